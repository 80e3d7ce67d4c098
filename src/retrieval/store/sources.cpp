#include "retrieval/store/sources.h"

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/hash.h"

namespace forerun {
namespace {

LogIdentity sources_identity(const Segment::Identity& identity) {
  return {LogIdentity::Kind::kSources, identity};
}

}  // namespace

uint64_t hash_of_document(std::span<const TokenId> tokens) {
  StableHash hash;
  hash.add(std::string_view("document"));  // no input has this hash
  hash.add(std::as_bytes(tokens));
  return hash.value();
}

Sources::Sources(std::filesystem::path path, const Segment::Identity& identity, int64_t n_bytes)
    : path_(std::move(path)), identity_(identity), n_bytes_(n_bytes) {
  if (n_bytes == 0) return;
  const LogContents log = read_log(path_, sources_identity(identity_), {.n_bytes = n_bytes});
  // All that the manifest counts was written completely once.
  if (log.n_torn_bytes > 0) {
    fail(ErrorCode::kInvalidFile, "{} is damaged: its last record does not match its checksum",
         path_.string());
  }
  for (const auto record : log.records) {
    if (record.empty()) hashes_.clear();
    std::vector<uint64_t> hashes(record.size() / sizeof(uint64_t));
    if (!hashes.empty()) std::memcpy(hashes.data(), record.data(), hashes.size() * sizeof(uint64_t));
    hashes_.insert(hashes.begin(), hashes.end());
  }
}

RecordLog Sources::open_log() const {
  return n_bytes_ == 0 ? RecordLog::create(path_, sources_identity(identity_))
                       : RecordLog::append_to(path_, n_bytes_);
}

int64_t Sources::write(std::span<const uint64_t> hashes) const {
  if (hashes.empty()) return n_bytes_;
  RecordLog log = open_log();
  log.append(std::as_bytes(hashes));
  log.sync();
  return log.n_bytes();
}

int64_t Sources::write_instead(std::span<const uint64_t> hashes) const {
  RecordLog log = open_log();
  log.append({});
  if (!hashes.empty()) log.append(std::as_bytes(hashes));
  log.sync();
  return log.n_bytes();
}

void Sources::added(std::span<const uint64_t> hashes, int64_t n_bytes) {
  hashes_.insert(hashes.begin(), hashes.end());
  n_bytes_ = n_bytes;
}

}  // namespace forerun
