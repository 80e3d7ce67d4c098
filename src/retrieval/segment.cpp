#include "retrieval/segment.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "retrieval/segment_file.h"
#include "retrieval/segment_search.h"
#include "retrieval/suffix_order.h"

namespace forerun {
namespace {

// How many documents there are; every token is checked on the way.
int64_t count_documents(std::span<const TokenId> text, int n_vocab) {
  CHECK(text.empty() || text.back() == Segment::kSeparator);
  int64_t n_documents = 0;
  bool valid = true;
  for (const TokenId token : text) {
    n_documents += token == Segment::kSeparator ? 1 : 0;
    valid = valid && to_int(token) >= to_int(Segment::kSeparator) && to_int(token) < n_vocab;
  }
  CHECK(valid);
  return n_documents;
}

template <typename T>
std::span<const T> as_span(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// -1, 0 or 1 as the text at a comes before, is equal to (as far as the order goes) or
// comes after the one at b.
int compare_places(const SegmentText& text, int64_t a, int64_t b) {
  for (int depth = 0; depth < Segment::kOrderDepth; ++depth) {
    const uint32_t value_a = text.value(a + depth);
    const uint32_t value_b = text.value(b + depth);
    if (value_a != value_b) return value_a < value_b ? -1 : 1;
    if (value_a == 0) return 0;
  }
  return 0;
}

}  // namespace

std::shared_ptr<const Segment> Segment::build(std::vector<TokenId> text, const Identity& identity,
                                              int n_threads, const Progress& progress) {
  CHECK(static_cast<int64_t>(text.size()) <= kMaxTokens && identity.n_vocab > 0 && n_threads > 0);
  std::shared_ptr<Segment> segment(new Segment);
  segment->identity_ = identity;
  segment->n_documents_ = count_documents(text, identity.n_vocab);
  const size_t n_entries = text.size() - static_cast<size_t>(segment->n_documents_);
  if (SegmentText::is_narrow(identity.n_vocab)) {
    segment->narrow_.reserve(text.size());
    for (const TokenId token : text) segment->narrow_.push_back(static_cast<uint16_t>(to_int(token)));
    std::vector<TokenId>().swap(text);  // its memory is needed
    segment->text_ = SegmentText(segment->narrow_);
  } else {
    segment->wide_ = std::move(text);
    segment->text_ = SegmentText(segment->wide_);
  }
  segment->owned_order_.resize(n_entries);
  const SuffixOrderTask task{segment->text_, identity.n_vocab, kOrderDepth, n_threads, progress};
  if (!make_suffix_order(task, segment->owned_order_)) return nullptr;
  segment->order_ = segment->owned_order_;
  segment->owned_directory_ =
      make_directory(segment->text_, segment->order_, {identity.n_vocab, SegmentDirectory::kKeyTokens});
  segment->directory_ = {segment->owned_directory_, segment->n_entries()};
  return segment;
}

std::shared_ptr<const Segment> Segment::open(const std::filesystem::path& path) {
  std::shared_ptr<Segment> segment(new Segment);
  segment->path_ = path;
  segment->file_.emplace(path);
  const auto bytes = segment->file_->bytes();
  const SegmentHeader header = read_segment_header(bytes, path);
  const SegmentParts parts = segment_parts(bytes, header);
  segment->identity_ = {header.tokenizer, static_cast<int>(header.n_vocab)};
  segment->n_documents_ = static_cast<int64_t>(header.n_documents);
  segment->text_ = header.token_bytes == sizeof(uint16_t) ? SegmentText(as_span<uint16_t>(parts.text))
                                                          : SegmentText(as_span<TokenId>(parts.text));
  segment->order_ = as_span<uint32_t>(parts.order);
  segment->directory_ = {as_span<uint64_t>(parts.directory), segment->n_entries()};
  return segment;
}

void Segment::write(const std::filesystem::path& path) const {
  SegmentHeader header{};
  header.token_bytes = text_.narrow() ? sizeof(uint16_t) : sizeof(TokenId);
  header.tokenizer = identity_.tokenizer;
  header.n_vocab = static_cast<uint32_t>(identity_.n_vocab);
  header.n_tokens = static_cast<uint64_t>(n_tokens());
  header.n_documents = static_cast<uint64_t>(n_documents_);
  const std::span<const std::byte> text(static_cast<const std::byte*>(text_.data()),
                                        static_cast<size_t>(text_.n_bytes()));
  write_segment_file(path, header, {std::as_bytes(directory_.keys()), text, std::as_bytes(order_)});
}

void Segment::verify() const {
  if (file_) verify_segment_blocks(file_->bytes(), path_);
  const auto invalid = [&](const char* what) {
    fail(ErrorCode::kInvalidFile, "{}: {}", path_.empty() ? "a segment in memory" : path_.string(),
         what);
  };
  int64_t n_separators = 0;
  for (int64_t place = 0; place < n_tokens(); ++place) {
    const TokenId at = token(place);
    if (at == kSeparator) ++n_separators;
    if (to_int(at) >= identity_.n_vocab || to_int(at) < to_int(kSeparator)) {
      invalid("its text has tokens that the vocabulary has not");
    }
  }
  if (n_separators != n_documents_ || (n_tokens() > 0 && token(n_tokens() - 1) != kSeparator)) {
    invalid("its documents are not what its header says");
  }
  std::vector<bool> seen(static_cast<size_t>(n_tokens()), false);
  for (size_t rank = 0; rank < order_.size(); ++rank) {
    const uint32_t place = order_[rank];
    if (rank + 16 < order_.size()) text_.prefetch(std::min<int64_t>(order_[rank + 16], n_tokens() - 1));
    if (place >= n_tokens() || seen[place] || token(place) == kSeparator) {
      invalid("its index does not list every place once");
    }
    seen[place] = true;
    if (rank == 0) continue;
    const int order = compare_places(text_, order_[rank - 1], place);
    if (order > 0 || (order == 0 && order_[rank - 1] < place)) invalid("its index is not in order");
  }
  const KeyFormat format(identity_.n_vocab, SegmentDirectory::kKeyTokens);
  if (!std::ranges::equal(make_directory(text_, order_, format), directory_.keys())) {
    invalid("its directory does not fit its index");
  }
}

int64_t Segment::n_bytes() const {
  if (file_) return static_cast<int64_t>(file_->bytes().size());
  return text_.n_bytes() + static_cast<int64_t>(order_.size_bytes() + directory_.keys().size_bytes());
}

int Segment::copy(int64_t place, std::span<TokenId> out) const {
  const auto limit = std::min<int64_t>(static_cast<int64_t>(out.size()), n_tokens() - place);
  int n = 0;
  for (; n < limit; ++n) {
    const TokenId at = token(place + n);
    // A separator, or what damage put there: nobody gets a token outside the vocabulary.
    if (to_int(at) < 0 || to_int(at) >= identity_.n_vocab) break;
    out[static_cast<size_t>(n)] = at;
  }
  return n;
}

Segment::Range Segment::find(std::span<const TokenId> tokens) const {
  const Segment* self = this;
  return SegmentSearch().find({&self, 1}, tokens)[0];
}

}  // namespace forerun
