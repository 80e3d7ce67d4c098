#include "retrieval/store/segment_texts.h"

#include "core/error.h"

namespace forerun {

int64_t count_tokens(std::span<const std::shared_ptr<const Segment>> segments) {
  int64_t n = 0;
  for (const auto& segment : segments) n += segment->n_tokens();
  return n;
}

int64_t count_documents(std::span<const std::shared_ptr<const Segment>> segments) {
  int64_t n = 0;
  for (const auto& segment : segments) n += segment->n_documents();
  return n;
}

std::vector<TokenId> concatenated_text(std::span<const std::shared_ptr<const Segment>> segments) {
  std::vector<TokenId> text;
  text.reserve(static_cast<size_t>(count_tokens(segments)));
  for (const auto& segment : segments) {
    bool valid =
        segment->n_tokens() == 0 || segment->token(segment->n_tokens() - 1) == Segment::kSeparator;
    for (int64_t place = 0; place < segment->n_tokens(); ++place) {
      const TokenId token = segment->token(place);
      valid = valid && to_int(token) < segment->identity().n_vocab;
      text.push_back(token);
    }
    if (!valid) fail(ErrorCode::kInvalidFile, "a segment is damaged: its text is not of its vocabulary");
  }
  return text;
}

std::vector<int64_t> sizes_of(std::span<const std::shared_ptr<const Segment>> segments) {
  std::vector<int64_t> sizes;
  for (const auto& segment : segments) sizes.push_back(segment->n_tokens());
  return sizes;
}

}  // namespace forerun
