// How a segment is stored.
//
// The file, little-endian, parts one after the other, each beginning at a multiple of 64:
//
//   header      SegmentHeader
//   directory   u64 keys (segment_directory.h)
//   text        u16 or, for vocabularies of more than 65,535 tokens, i32 per token; a
//               separator has all bits set
//   order       u32 places
//   checksums   u64 StableHash of each block of kBlockBytes from the directory on
//
// 6.08 bytes per token with 16-bit tokens, 8.08 with 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace forerun {

struct SegmentHeader {
  static constexpr uint64_t kMagic = 0x4745534E55524F46;  // "FORUNSEG"
  static constexpr uint32_t kVersion = 1;

  uint64_t magic;
  uint32_t version;
  uint32_t token_bytes;  // 2 or 4
  uint64_t tokenizer;
  uint32_t n_vocab;
  uint32_t order_depth;
  uint64_t n_tokens;
  uint64_t n_documents;
  uint64_t directory_offset;
  uint64_t text_offset;
  uint64_t order_offset;
  uint64_t checksums_offset;
  uint64_t file_bytes;
  uint64_t checksums_hash;  // of the checksums
  uint64_t reserved[3];     // zero
  uint64_t header_hash;     // of all the above
};
static_assert(sizeof(SegmentHeader) == 128);

// The parts as bytes.
struct SegmentParts {
  std::span<const std::byte> directory;
  std::span<const std::byte> text;
  std::span<const std::byte> order;
};

// Writes a file of these parts; fills in the fields of `header` that follow from them.
// Beside `path` first, synced, then renamed. Throws Error{kIo}, leaving nothing behind.
void write_segment_file(const std::filesystem::path& path, SegmentHeader header,
                        const SegmentParts& parts);

// The header of a mapped file, everything in it checked, also against the size of the
// file. Throws Error{kInvalidFile}; `path` is for its message.
SegmentHeader read_segment_header(std::span<const std::byte> file, const std::filesystem::path& path);

SegmentParts segment_parts(std::span<const std::byte> file, const SegmentHeader& header);

// Compares every block with its checksum. Throws Error{kInvalidFile} that says where.
void verify_segment_blocks(std::span<const std::byte> file, const std::filesystem::path& path);

}  // namespace forerun
