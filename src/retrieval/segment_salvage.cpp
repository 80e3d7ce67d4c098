#include "retrieval/segment_salvage.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/cpu_topology.h"
#include "core/mapped_file.h"
#include "retrieval/segment_file.h"

namespace forerun {
namespace {

using Bytes = std::span<const std::byte>;

// Blocks one after the other, and where their checksums are.
struct Blocks {
  size_t begin;
  size_t end;
  size_t block_bytes;
  size_t checksums;
};

// Which blocks match their checksums. A file that was cut short lacks some of either.
std::vector<bool> matching(Bytes file, const Blocks& blocks) {
  std::vector<bool> matches;
  size_t checksum = blocks.checksums;
  for (size_t begin = blocks.begin; begin < blocks.end; begin += blocks.block_bytes) {
    const size_t end = std::min(begin + blocks.block_bytes, blocks.end);
    uint64_t stored = 0;
    const bool is_there = end <= file.size() && checksum + sizeof(stored) <= file.size();
    if (is_there) std::memcpy(&stored, file.data() + checksum, sizeof(stored));
    matches.push_back(is_there && block_checksum(file.subspan(begin, end - begin)) == stored);
    checksum += sizeof(stored);
  }
  return matches;
}

TokenId token_at(Bytes text, uint32_t token_bytes, uint64_t place) {
  const std::byte* at = text.data() + place * token_bytes;
  if (token_bytes == sizeof(uint16_t)) {
    uint16_t narrow = 0;
    std::memcpy(&narrow, at, sizeof(narrow));
    return SegmentText({&narrow, 1}).token(0);
  }
  TokenId wide{};
  std::memcpy(&wide, at, sizeof(wide));
  return wide;
}

// Separators are.
bool is_of_vocabulary(TokenId token, const SegmentHeader& header) {
  return to_int(token) >= to_int(Segment::kSeparator) &&
         to_int(token) < static_cast<int>(header.n_vocab);
}

// Says of a place in the text whether it is as it was written.
class TrustedText {
 public:
  TrustedText(Bytes file, const SegmentHeader& header)
      : file_(file),
        header_(header),
        coarse_(matching(file, {segment_blocks_offset(), header.checksums_offset,
                                SegmentHeader::kBlockBytes, header.checksums_offset})) {
    const size_t text_end = header.text_offset + header.n_tokens * header.token_bytes;
    if (count_text_blocks(header) == 0) return;
    fine_ = matching(
        file, {header.text_offset, text_end, SegmentHeader::kTextBlockBytes, segment_blocks_offset()});
  }

  bool has(uint64_t place) const {
    const size_t offset = place * header_.token_bytes;
    const size_t coarse =
        (header_.text_offset + offset - segment_blocks_offset()) / SegmentHeader::kBlockBytes;
    return (!fine_.empty() && fine_[offset / SegmentHeader::kTextBlockBytes]) || coarse_[coarse];
  }

  TokenId token(uint64_t place) const {
    return token_at(file_.subspan(header_.text_offset), header_.token_bytes, place);
  }

 private:
  Bytes file_;
  const SegmentHeader& header_;
  std::vector<bool> coarse_;
  std::vector<bool> fine_;
};

std::vector<TokenId> whole_documents(Bytes file, const SegmentHeader& header) {
  const TrustedText trusted(file, header);
  std::vector<TokenId> text;
  size_t n_whole = 0;           // tokens of whole documents
  bool knows_its_begin = true;  // of the document that is being read
  for (uint64_t place = 0; place < header.n_tokens; ++place) {
    if (!trusted.has(place) || !is_of_vocabulary(trusted.token(place), header)) {
      text.resize(n_whole);
      knows_its_begin = false;
      continue;
    }
    const TokenId token = trusted.token(place);
    if (knows_its_begin) text.push_back(token);
    if (token != Segment::kSeparator) continue;
    knows_its_begin = true;
    n_whole = text.size();
  }
  text.resize(n_whole);
  return text;
}

// The file with an index made anew from its text, if that could be the text of a segment. Where
// only the index was damaged, all blocks match their checksums again, which proves the text.
std::vector<std::byte> with_new_index(Bytes file, const SegmentHeader& header) {
  const SegmentParts parts = segment_parts(file, header);
  std::vector<TokenId> text;
  for (uint64_t place = 0; place < header.n_tokens; ++place) {
    text.push_back(token_at(parts.text, header.token_bytes, place));
    if (!is_of_vocabulary(text.back(), header)) return {};
  }
  const auto n_documents = std::count(text.begin(), text.end(), Segment::kSeparator);
  if (text.empty() || text.back() != Segment::kSeparator ||
      n_documents != static_cast<std::ptrdiff_t>(header.n_documents)) {
    return {};
  }
  const auto segment = Segment::build(
      std::move(text), {header.tokenizer, static_cast<int>(header.n_vocab)}, cpu_topology().n_cores);
  std::vector<std::byte> mended(file.size());
  const auto put = [&](size_t offset, Bytes part) {
    std::ranges::copy(part, mended.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  put(header.directory_offset, std::as_bytes(segment->directory().keys()));
  put(header.text_offset, parts.text);
  put(header.order_offset, std::as_bytes(segment->order()));
  put(header.checksums_offset, file.subspan(header.checksums_offset));
  return mended;
}

}  // namespace

std::vector<TokenId> salvage_segment(const std::filesystem::path& path, const SegmentClaim& claim) {
  const MappedFile file(path);
  std::vector<TokenId> best;
  // A damaged header may not even say which version it is of; where another one has its
  // checksums, next to nothing matches them.
  for (uint32_t version = 1; version <= SegmentHeader::kVersion; ++version) {
    SegmentHeader header{};
    header.version = version;
    header.token_bytes =
        SegmentText::is_narrow(claim.identity.n_vocab) ? sizeof(uint16_t) : sizeof(TokenId);
    header.n_vocab = static_cast<uint32_t>(claim.identity.n_vocab);
    header.order_depth = Segment::kOrderDepth;
    header.n_tokens = static_cast<uint64_t>(claim.n_tokens);
    header.n_documents = static_cast<uint64_t>(claim.n_documents);
    if (!lay_out_segment(header)) continue;
    auto text = whole_documents(file.bytes(), header);
    const bool is_all = static_cast<int64_t>(text.size()) == claim.n_tokens;
    if (count_text_blocks(header) == 0 && !is_all && file.bytes().size() == header.file_bytes) {
      auto more = whole_documents(with_new_index(file.bytes(), header), header);
      if (more.size() > text.size()) text = std::move(more);
    }
    if (text.size() > best.size()) best = std::move(text);
  }
  return best;
}

}  // namespace forerun
