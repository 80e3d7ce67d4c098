#include "retrieval/store/record_log.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/file_version.h"
#include "core/hash.h"

namespace forerun {
namespace {

constexpr char kMagic[4] = {'F', 'R', 'L', 'G'};
constexpr char kMarker[4] = {'F', 'R', 'E', 'C'};
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 8;

struct Header {
  char magic[4];
  uint32_t version;
  uint32_t kind;
  uint32_t n_vocab;
  uint64_t tokenizer;
  uint64_t reserved;
  uint64_t checksum;
};
static_assert(sizeof(Header) == 40);

struct RecordHeader {
  char marker[4];
  uint32_t n_bytes;
  uint64_t checksum;
};
static_assert(sizeof(RecordHeader) == 16);

uint64_t checksum_of(const Header& header) {
  StableHash hash;
  hash.add(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
  return hash.value();
}

uint64_t checksum_of(size_t offset, std::span<const std::byte> payload) {
  StableHash hash;
  hash.add(uint64_t{offset});
  hash.add(uint64_t{payload.size()});
  hash.add(payload);
  return hash.value();
}

size_t padded(size_t n_bytes) {
  return (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The payload of the record at `offset`, if a whole one is there.
std::optional<std::span<const std::byte>> record_at(std::span<const std::byte> bytes, size_t offset) {
  if (bytes.size() - offset < sizeof(RecordHeader)) return std::nullopt;
  RecordHeader header;
  std::memcpy(&header, bytes.data() + offset, sizeof(header));
  if (std::memcmp(header.marker, kMarker, sizeof(kMarker)) != 0) return std::nullopt;
  const size_t begin = offset + sizeof(header);
  if (padded(header.n_bytes) > bytes.size() - begin) return std::nullopt;
  const auto payload = bytes.subspan(begin, header.n_bytes);
  if (header.checksum != checksum_of(offset, payload)) return std::nullopt;
  return payload;
}

// Where the next whole record begins; the checksum covers the offset, so nothing else
// can look like one.
std::optional<size_t> next_record(std::span<const std::byte> bytes, size_t offset) {
  for (size_t at = offset + kAlignment; at + sizeof(RecordHeader) <= bytes.size(); at += kAlignment) {
    if (record_at(bytes, at)) return at;
  }
  return std::nullopt;
}

void check_header(std::span<const std::byte> bytes, const LogIdentity& identity,
                  const std::string& name) {
  Header header{};
  if (bytes.size() < sizeof(header)) fail(ErrorCode::kInvalidFile, "{} is truncated", name);
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    fail(ErrorCode::kInvalidFile, "{} is not a file of a datastore", name);
  }
  check_file_version(name, header.version, kVersion);
  if (header.checksum != checksum_of(header) || header.kind != static_cast<uint32_t>(identity.kind)) {
    fail(ErrorCode::kInvalidFile, "{} is damaged: its header does not match its checksum", name);
  }
  if (header.tokenizer != identity.text.tokenizer ||
      header.n_vocab != static_cast<uint32_t>(identity.text.n_vocab)) {
    fail(ErrorCode::kInvalidFile, "{} does not belong to its store: it is of another tokenizer", name);
  }
}

}  // namespace

LogContents read_log(const std::filesystem::path& path, const LogIdentity& identity,
                     const LogReading& reading) {
  LogContents log;
  log.bytes = read_whole_file(path);
  if (reading.n_bytes) {
    const auto n_bytes = static_cast<size_t>(*reading.n_bytes);
    if (log.bytes.size() < n_bytes) fail(ErrorCode::kInvalidFile, "{} is truncated", path.string());
    log.bytes.resize(n_bytes);
  }
  check_header(log.bytes, identity, path.string());
  size_t offset = sizeof(Header);
  while (offset < log.bytes.size()) {
    if (const auto payload = record_at(log.bytes, offset)) {
      log.records.push_back(*payload);
      offset += sizeof(RecordHeader) + padded(payload->size());
      continue;
    }
    const auto next = next_record(log.bytes, offset);
    if (!next) break;
    if (reading.damage == Damage::kFail) {
      fail(ErrorCode::kInvalidFile, "{} is damaged: the record at byte {} does not match its checksum",
           path.string(), offset);
    }
    ++log.n_damaged;
    offset = *next;
  }
  log.n_good_bytes = static_cast<int64_t>(offset);
  log.n_torn_bytes = static_cast<int64_t>(log.bytes.size() - offset);
  return log;
}

RecordLog RecordLog::create(const std::filesystem::path& path, const LogIdentity& identity) {
  Header header{.magic = {},
                .version = kVersion,
                .kind = static_cast<uint32_t>(identity.kind),
                .n_vocab = static_cast<uint32_t>(identity.text.n_vocab),
                .tokenizer = identity.text.tokenizer,
                .reserved = 0,
                .checksum = 0};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.checksum = checksum_of(header);
  StoreFile file = StoreFile::create(path);
  try {
    file.write_at(0, std::as_bytes(std::span(&header, 1)));
    file.sync();
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    throw;
  }
  return {std::move(file), sizeof(header)};
}

RecordLog RecordLog::append_to(const std::filesystem::path& path, int64_t n_good_bytes) {
  StoreFile file = StoreFile::open(path);
  file.truncate(n_good_bytes);
  return {std::move(file), n_good_bytes};
}

void RecordLog::append(std::span<const std::byte> payload) {
  CHECK(payload.size() <= std::numeric_limits<uint32_t>::max());
  RecordHeader header{.marker = {},
                      .n_bytes = static_cast<uint32_t>(payload.size()),
                      .checksum = checksum_of(static_cast<size_t>(n_bytes_), payload)};
  std::memcpy(header.marker, kMarker, sizeof(kMarker));
  buffer_.assign(sizeof(header) + padded(payload.size()), std::byte{0});
  std::memcpy(buffer_.data(), &header, sizeof(header));
  if (!payload.empty()) std::memcpy(buffer_.data() + sizeof(header), payload.data(), payload.size());
  try {
    file_.write_at(n_bytes_, buffer_);
  } catch (const Error&) {
    cut(n_bytes_);
    throw;
  }
  n_bytes_ += static_cast<int64_t>(buffer_.size());
}

void RecordLog::cut(int64_t n_bytes) {
  n_bytes_ = n_bytes;
  try {
    file_.truncate(n_bytes);
  } catch (const Error&) {
    // The next record overwrites what is left, and nobody was told that it is there.
  }
}

}  // namespace forerun
