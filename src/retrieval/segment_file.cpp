#include "retrieval/segment_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "core/file_version.h"
#include "core/hash.h"
#include "core/replace_file.h"
#include "retrieval/segment.h"

namespace forerun {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kBlockBytes = SegmentHeader::kBlockBytes;
constexpr size_t kTextBlockBytes = SegmentHeader::kTextBlockBytes;

size_t aligned(size_t n_bytes) {
  return (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t header_hash(const SegmentHeader& header) {
  return block_checksum(
      std::as_bytes(std::span(&header, 1)).first(offsetof(SegmentHeader, header_hash)));
}

// Writes parts behind each other and hashes the blocks of what it writes.
class BlockWriter {
 public:
  BlockWriter(ReplacementFile& file, size_t offset) : file_(file), offset_(offset) {
    block_.reserve(kBlockBytes);
  }

  // `bytes`, then zeros up to `end`.
  void write_up_to(std::span<const std::byte> bytes, size_t end) {
    const size_t n_zeros = end - offset_ - block_.size() - bytes.size();
    write(bytes);
    write(std::vector<std::byte>(n_zeros));
  }

  std::vector<uint64_t> finish() {
    if (!block_.empty()) flush();
    return std::move(hashes_);
  }

 private:
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kBlockBytes - block_.size());
      block_.insert(block_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
      bytes = bytes.subspan(n);
      if (block_.size() == kBlockBytes) flush();
    }
  }

  void flush() {
    hashes_.push_back(block_checksum(block_));
    file_.write_at(static_cast<int64_t>(offset_), block_);
    offset_ += block_.size();
    block_.clear();
  }

  ReplacementFile& file_;
  size_t offset_;
  std::vector<std::byte> block_;
  std::vector<uint64_t> hashes_;
};

[[noreturn]] void fail_invalid(const std::filesystem::path& path, std::string_view what) {
  fail(ErrorCode::kInvalidFile, "{} {}", path.string(), what);
}

bool fields_make_sense(const SegmentHeader& header) {
  const bool counts = header.n_tokens <= static_cast<uint64_t>(Segment::kMaxTokens) &&
                      header.n_documents <= header.n_tokens &&
                      (header.n_tokens == 0) == (header.n_documents == 0);
  const bool vocabulary =
      header.n_vocab >= 1 && header.n_vocab <= INT32_MAX &&
      header.token_bytes == (SegmentText::is_narrow(static_cast<int>(header.n_vocab)) ? 2 : 4);
  return counts && vocabulary && header.order_depth == Segment::kOrderDepth;
}

std::vector<uint64_t> text_checksums(std::span<const std::byte> text) {
  std::vector<uint64_t> sums;
  for (size_t begin = 0; begin < text.size(); begin += kTextBlockBytes) {
    sums.push_back(block_checksum(text.subspan(begin, std::min(kTextBlockBytes, text.size() - begin))));
  }
  return sums;
}

}  // namespace

uint64_t block_checksum(std::span<const std::byte> block) {
  return StableHash::of({reinterpret_cast<const char*>(block.data()), block.size()});
}

size_t segment_blocks_offset() {
  return aligned(sizeof(SegmentHeader));
}

size_t count_text_blocks(const SegmentHeader& header) {
  if (header.version == 1) return 0;
  return (header.n_tokens * header.token_bytes + kTextBlockBytes - 1) / kTextBlockBytes;
}

bool lay_out_segment(SegmentHeader& header) {
  if (!fields_make_sense(header)) return false;
  const auto n_entries = static_cast<int64_t>(header.n_tokens - header.n_documents);
  header.directory_offset =
      segment_blocks_offset() + aligned(count_text_blocks(header) * sizeof(uint64_t));
  header.text_offset =
      header.directory_offset + aligned(SegmentDirectory::n_keys(n_entries) * sizeof(uint64_t));
  header.order_offset = header.text_offset + aligned(header.n_tokens * header.token_bytes);
  // Whoever reads kOrderDepth tokens from a place near the end stays inside the file.
  const size_t order_bytes =
      std::max(n_entries * sizeof(uint32_t), Segment::kOrderDepth * sizeof(TokenId));
  header.checksums_offset = header.order_offset + aligned(order_bytes);
  const size_t hashed_bytes = header.checksums_offset - segment_blocks_offset();
  const size_t n_blocks = (hashed_bytes + kBlockBytes - 1) / kBlockBytes;
  header.file_bytes = header.checksums_offset + n_blocks * sizeof(uint64_t);
  return true;
}

void write_segment_file(const std::filesystem::path& path, SegmentHeader header,
                        const SegmentParts& parts) {
  header.magic = SegmentHeader::kMagic;
  header.version = SegmentHeader::kVersion;
  header.order_depth = Segment::kOrderDepth;
  CHECK(lay_out_segment(header));

  ReplacementFile file(path);
  BlockWriter writer(file, segment_blocks_offset());
  const std::vector<uint64_t> text_sums = text_checksums(parts.text);
  writer.write_up_to(std::as_bytes(std::span(text_sums)), header.directory_offset);
  writer.write_up_to(parts.directory, header.text_offset);
  writer.write_up_to(parts.text, header.order_offset);
  writer.write_up_to(parts.order, header.checksums_offset);
  const std::vector<uint64_t> hashes = writer.finish();
  const auto hash_bytes = std::as_bytes(std::span(hashes));
  file.write_at(static_cast<int64_t>(header.checksums_offset), hash_bytes);
  header.checksums_hash = block_checksum(hash_bytes);
  header.header_hash = header_hash(header);
  file.write_at(0, std::as_bytes(std::span(&header, 1)));
  file.finish();
}

SegmentHeader read_segment_header(std::span<const std::byte> file, const std::filesystem::path& path) {
  SegmentHeader header;
  uint64_t magic = 0;
  if (file.size() >= sizeof(magic)) std::memcpy(&magic, file.data(), sizeof(magic));
  if (magic != SegmentHeader::kMagic) fail_invalid(path, "is not a datastore segment");
  if (file.size() < sizeof(header)) fail_invalid(path, "is cut short");
  std::memcpy(&header, file.data(), sizeof(header));
  check_file_version(path, header.version, SegmentHeader::kVersion);
  SegmentHeader expected = header;
  if (header.header_hash != header_hash(header) || !lay_out_segment(expected) ||
      std::memcmp(&expected, &header, sizeof(header)) != 0) {
    fail_invalid(path, "has a damaged header");
  }
  if (file.size() != header.file_bytes) {
    fail(ErrorCode::kInvalidFile, "{} has {} bytes instead of {}", path.string(), file.size(),
         header.file_bytes);
  }
  if (block_checksum(file.subspan(header.checksums_offset)) != header.checksums_hash) {
    fail_invalid(path, "has damaged checksums");
  }
  return header;
}

SegmentParts segment_parts(std::span<const std::byte> file, const SegmentHeader& header) {
  const uint64_t n_entries = header.n_tokens - header.n_documents;
  const auto n_keys = static_cast<uint64_t>(SegmentDirectory::n_keys(static_cast<int64_t>(n_entries)));
  return {file.subspan(header.directory_offset, n_keys * sizeof(uint64_t)),
          file.subspan(header.text_offset, header.n_tokens * header.token_bytes),
          file.subspan(header.order_offset, n_entries * sizeof(uint32_t))};
}

void verify_segment_blocks(std::span<const std::byte> file, const std::filesystem::path& path) {
  const SegmentHeader header = read_segment_header(file, path);
  const size_t first = segment_blocks_offset();
  const auto hashed = file.subspan(first, header.checksums_offset - first);
  for (size_t begin = 0; begin < hashed.size(); begin += kBlockBytes) {
    uint64_t stored = 0;
    std::memcpy(&stored, file.data() + header.checksums_offset + begin / kBlockBytes * sizeof(stored),
                sizeof(stored));
    const auto block = hashed.subspan(begin, std::min(kBlockBytes, hashed.size() - begin));
    if (block_checksum(block) == stored) continue;
    const size_t offset = first + begin;
    fail(ErrorCode::kInvalidFile, "{} is damaged between bytes {} and {}", path.string(), offset,
         offset + block.size());
  }
}

}  // namespace forerun
