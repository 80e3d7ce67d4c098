#include "retrieval/segment_salvage.h"

#include <algorithm>
#include <cstring>
#include <span>

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
    const std::byte* at = file_.data() + header_.text_offset + place * header_.token_bytes;
    if (header_.token_bytes == sizeof(uint16_t)) {
      uint16_t narrow = 0;
      std::memcpy(&narrow, at, sizeof(narrow));
      return SegmentText({&narrow, 1}).token(0);
    }
    TokenId wide{};
    std::memcpy(&wide, at, sizeof(wide));
    return wide;
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
    const TokenId token = trusted.has(place) ? trusted.token(place) : TokenId{INT32_MAX};
    if (to_int(token) < to_int(Segment::kSeparator) ||
        to_int(token) >= static_cast<int>(header.n_vocab)) {
      text.resize(n_whole);
      knows_its_begin = false;
      continue;
    }
    if (knows_its_begin) text.push_back(token);
    if (token != Segment::kSeparator) continue;
    knows_its_begin = true;
    n_whole = text.size();
  }
  text.resize(n_whole);
  return text;
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
    if (text.size() > best.size()) best = std::move(text);
  }
  return best;
}

}  // namespace forerun
