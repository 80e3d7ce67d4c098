// How a segment is stored.
//
// The file, little-endian, parts one after the other, each beginning at a multiple of 64:
//
//   header      SegmentHeader
//   text sums   u64 StableHash of each kTextBlockBytes of the text; version 1 has none
//   directory   u64 keys (segment_directory.h)
//   text        u16 or, for vocabularies of more than 65,535 tokens, i32 per token; a
//               separator has all bits set
//   order       u32 places
//   checksums   u64 StableHash of each kBlockBytes from behind the header to here
//
// The checksums of whole blocks are for finding damage fast. The text's own are for keeping
// what lies beside it (segment_salvage.h), so they are fine, and stand in front, where a file
// that was cut short has them too. Files of version 1 are read, but written no more.
//
// 6.11 bytes per token with 16-bit tokens, 8.14 with 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace forerun {

struct SegmentHeader {
  static constexpr uint64_t kMagic = 0x4745534E55524F46;  // "FORUNSEG"
  static constexpr uint32_t kVersion = 2;
  static constexpr size_t kBlockBytes = size_t{1} << 20;
  static constexpr size_t kTextBlockBytes = 512;

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
// file. Throws Error: {kInvalidFile}, {kUnsupported} of a newer version; `path` is for its
// message.
SegmentHeader read_segment_header(std::span<const std::byte> file, const std::filesystem::path& path);

SegmentParts segment_parts(std::span<const std::byte> file, const SegmentHeader& header);

// Where the parts of a file lie: fills in the offsets, which follow from the version, the
// counts and the size of tokens. False: a header cannot say that.
bool lay_out_segment(SegmentHeader& header);

// Where the blocks with checksums begin, the text's checksums first of all.
size_t segment_blocks_offset();
// How many checksums of its own the text has.
size_t count_text_blocks(const SegmentHeader& header);
// A block's checksum.
uint64_t block_checksum(std::span<const std::byte> block);

// Compares every block with its checksum. Throws Error{kInvalidFile} that says where.
void verify_segment_blocks(std::span<const std::byte> file, const std::filesystem::path& path);

}  // namespace forerun
