#include "retrieval/continuation_search.h"

#include <algorithm>

namespace forerun {
namespace {

// Samples that a prefix must show before it is trusted at all: a datastore's text is not
// the text's own. Measured on text like the datastore's and on text unlike it.
constexpr double kDoubt = 8.0;

}  // namespace

const ContinuationTrie& ContinuationSearch::search(std::span<const Segment* const> segments,
                                                   std::span<const TokenId> text, int max_length) {
  trie_.clear();
  n_samples_ = 0;
  unassigned_ = 1.0;
  if (segments.empty()) return trie_;
  const int longest = std::min(options_.max_prefix, static_cast<int>(text.size()));
  const int shortest = options_.variant == RetrievalVariant::kPaper && longest > 1 ? 2 : 1;
  for (int length = longest; length >= shortest && !enough(); --length) {
    const auto prefix = text.last(static_cast<size_t>(length));
    const auto ranges = segment_search_.find(segments, prefix);
    samples_.clear();
    choose_samples(options_.variant, options_.max_samples, segments, ranges, samples_);
    if (samples_.empty()) continue;
    n_samples_ += static_cast<int>(samples_.size());
    read_continuations(segments, length, max_length);
    insert_all(length);
  }
  return trie_;
}

bool ContinuationSearch::enough() const {
  // The paper counts the nodes of the tree, its root among them.
  if (options_.variant == RetrievalVariant::kPaper) return trie_.n_nodes() + 1 >= options_.min_samples;
  return n_samples_ >= options_.min_samples;
}

// Index, then text: each is asked for from memory before the first of them is used.
void ContinuationSearch::read_continuations(std::span<const Segment* const> segments, int match_length,
                                            int max_length) {
  const size_t n = samples_.size();
  for (const Sample& sample : samples_) {
    __builtin_prefetch(segments[static_cast<size_t>(sample.segment)]->order().data() + sample.rank);
  }
  places_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Segment& segment = *segments[static_cast<size_t>(samples_[i].segment)];
    // A damaged index may lead behind the text, where nothing follows.
    places_[i] = std::min(segment.place(samples_[i].rank) + match_length, segment.n_tokens());
    segment.text().prefetch(places_[i]);
  }
  const auto room = static_cast<size_t>(max_length);
  tokens_.resize(n * room);
  lengths_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Segment& segment = *segments[static_cast<size_t>(samples_[i].segment)];
    lengths_[i] = segment.copy(places_[i], std::span(tokens_).subspan(i * room, room));
  }
}

// The weight of each sample of this prefix; the rest is left for shorter ones.
float ContinuationSearch::take_weight() {
  const size_t n = samples_.size();
  const size_t room = tokens_.size() / n;
  first_tokens_.clear();
  for (size_t i = 0; i < n; ++i) {
    first_tokens_.push_back(lengths_[i] == 0 ? Segment::kSeparator : tokens_[i * room]);
  }
  std::sort(first_tokens_.begin(), first_tokens_.end());
  const auto n_distinct =
      std::unique(first_tokens_.begin(), first_tokens_.end()) - first_tokens_.begin();
  const auto total = static_cast<double>(n);
  const double taken = total / (total + static_cast<double>(n_distinct) + kDoubt);
  const auto weight = static_cast<float>(unassigned_ * taken / total);
  unassigned_ *= 1.0 - taken;
  return weight;
}

void ContinuationSearch::insert_all(int match_length) {
  const size_t n = samples_.size();
  const size_t room = tokens_.size() / n;
  const float weight = options_.variant == RetrievalVariant::kPooled ? take_weight() : 1.0f;
  for (size_t i = 0; i < n; ++i) {
    trie_.insert(std::span(tokens_).subspan(i * room, static_cast<size_t>(lengths_[i])), match_length,
                 weight);
  }
}

}  // namespace forerun
