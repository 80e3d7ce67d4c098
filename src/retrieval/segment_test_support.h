// Random texts and plain, slow answers to compare a segment's with.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "retrieval/segment.h"
#include "retrieval/segment_file.h"

namespace forerun {

struct RandomText {
  int n_documents = 5;
  int max_length = 40;  // of a document
  int n_vocab = 4;
  // Ids are alphabet indices times this, so that large ids occur.
  int stride = 1;
};

inline std::vector<TokenId> random_text(const RandomText& spec, std::mt19937& random) {
  std::vector<TokenId> text;
  const int n_letters = (spec.n_vocab - 1) / spec.stride + 1;
  for (int document = 0; document < spec.n_documents; ++document) {
    const int length = std::uniform_int_distribution<int>(0, spec.max_length)(random);
    for (int i = 0; i < length; ++i) {
      text.push_back(
          TokenId{std::uniform_int_distribution<int>(0, n_letters - 1)(random) * spec.stride});
    }
    text.push_back(Segment::kSeparator);
  }
  return text;
}

// What stands at a place, as far as the order compares it.
inline std::vector<TokenId> text_at(std::span<const TokenId> text, int64_t place, int depth) {
  const auto behind = text.subspan(std::min(static_cast<size_t>(place), text.size()));
  const TokenId* end = behind.data() + std::min(static_cast<size_t>(depth), behind.size());
  return {behind.data(), std::find(behind.data(), end, Segment::kSeparator)};
}

// All places of tokens, in order: of the same text, the later first.
inline std::vector<int64_t> ordered_places(std::span<const TokenId> text) {
  std::vector<std::pair<std::vector<TokenId>, int64_t>> entries;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (text[i] != Segment::kSeparator)
      entries.emplace_back(text_at(text, place, Segment::kOrderDepth), -place);
  }
  std::sort(entries.begin(), entries.end());
  std::vector<int64_t> places;
  for (const auto& entry : entries) places.push_back(-entry.second);
  return places;
}

// The places where `query`, which has no separators, occurs, in order; `places` are all, in order.
inline std::vector<int64_t> occurrences(std::span<const TokenId> text, std::vector<int64_t> places,
                                        std::span<const TokenId> query) {
  std::erase_if(places, [&](int64_t place) {
    const TokenId* begin = text.data() + place;
    return text.size() - static_cast<size_t>(place) < query.size() ||
           !std::equal(begin, begin + query.size(), query.data());
  });
  return places;
}

// Writes a segment as the first version of the format has it.
inline void write_first_version(const Segment& segment, const std::filesystem::path& path) {
  SegmentHeader header{};
  header.magic = SegmentHeader::kMagic;
  header.version = 1;
  header.token_bytes = segment.text().narrow() ? 2 : 4;
  header.tokenizer = segment.identity().tokenizer;
  header.n_vocab = static_cast<uint32_t>(segment.identity().n_vocab);
  header.order_depth = Segment::kOrderDepth;
  header.n_tokens = static_cast<uint64_t>(segment.n_tokens());
  header.n_documents = static_cast<uint64_t>(segment.n_documents());
  if (!lay_out_segment(header)) return;
  std::vector<std::byte> bytes(header.file_bytes);
  const auto put = [&](size_t offset, std::span<const std::byte> part) {
    std::ranges::copy(part, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  put(header.directory_offset, std::as_bytes(segment.directory().keys()));
  put(header.text_offset, {static_cast<const std::byte*>(segment.text().data()),
                           static_cast<size_t>(segment.text().n_bytes())});
  put(header.order_offset, std::as_bytes(segment.order()));
  const std::span<const std::byte> all(bytes);
  size_t checksum = header.checksums_offset;
  for (size_t begin = header.directory_offset; begin < header.checksums_offset;
       begin += SegmentHeader::kBlockBytes) {
    const size_t end = std::min<size_t>(begin + SegmentHeader::kBlockBytes, header.checksums_offset);
    const uint64_t value = block_checksum(all.subspan(begin, end - begin));
    put(checksum, std::as_bytes(std::span(&value, 1)));
    checksum += sizeof(value);
  }
  header.checksums_hash = block_checksum(all.subspan(header.checksums_offset));
  header.header_hash =
      block_checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(SegmentHeader, header_hash)));
  put(0, std::as_bytes(std::span(&header, 1)));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<int64_t> places_of(const Segment& segment, Segment::Range range) {
  std::vector<int64_t> places;
  for (int64_t rank = range.begin; rank < range.end; ++rank) places.push_back(segment.place(rank));
  return places;
}

}  // namespace forerun
