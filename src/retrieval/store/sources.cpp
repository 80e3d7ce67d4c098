#include "retrieval/store/sources.h"

#include <cstring>
#include <utility>
#include <vector>

#include "retrieval/store/record_log.h"

namespace forerun {
namespace {

LogIdentity log_identity(const Segment::Identity& identity) {
  return {LogIdentity::Kind::kSources, identity};
}

}  // namespace

Sources::Sources(std::filesystem::path path, const Segment::Identity& identity, int64_t n_bytes)
    : path_(std::move(path)), identity_(identity), n_bytes_(n_bytes) {
  if (n_bytes == 0) return;
  const LogContents log = read_log(path_, log_identity(identity_), {.n_bytes = n_bytes});
  for (const auto record : log.records) {
    std::vector<uint64_t> hashes(record.size() / sizeof(uint64_t));
    if (!hashes.empty()) std::memcpy(hashes.data(), record.data(), hashes.size() * sizeof(uint64_t));
    hashes_.insert(hashes.begin(), hashes.end());
  }
}

int64_t Sources::write(std::span<const uint64_t> hashes) const {
  if (hashes.empty()) return n_bytes_;
  RecordLog log = n_bytes_ == 0 ? RecordLog::create(path_, log_identity(identity_))
                                : RecordLog::append_to(path_, n_bytes_);
  log.append(std::as_bytes(hashes));
  log.sync();
  return log.n_bytes();
}

void Sources::added(std::span<const uint64_t> hashes, int64_t n_bytes) {
  hashes_.insert(hashes.begin(), hashes.end());
  n_bytes_ = n_bytes;
}

}  // namespace forerun
