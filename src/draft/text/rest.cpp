#include "draft/text/rest.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "retrieval/segment_search.h"
#include "tree/best_first.h"

namespace forerun {
namespace {

class RestRequestDrafter : public RequestDrafter {
 public:
  RestRequestDrafter(const RestOptions& options, const SegmentSource& segments,
                     std::span<const TokenId> prompt)
      : options_(options), segments_(segments), text_(prompt.begin(), prompt.end()) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    if (limits.max_nodes < 1 || limits.max_depth < 1 || !limits.from_stores || !segments_) return;
    const auto list = segments_();
    if (!list) return;
    segments_now_.clear();
    for (const auto& segment : *list) segments_now_.push_back(segment.get());
    for (int n = longest_match(); n >= options_.min_match && tree.empty(); --n) {
      read_rows(n);
      grow(n, limits, tree);
    }
  }

  void append(std::span<const TokenId> tokens) override {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }

 private:
  // Neighbouring rows that are alike up to a column, which has this token.
  struct Run {
    TokenId token;
    int32_t begin;
    int32_t end;
  };
  // The runs of rows that have it.
  struct Beginning {
    int32_t parent;
    size_t first_run;
    size_t end_run;
  };

  // Where the last n tokens occur in each of the segments.
  std::span<const Segment::Range> find_last(int n) {
    return search_.find(segments_now_, std::span(text_).last(static_cast<size_t>(n)));
  }

  // What occurs has ends that occur, so halving finds the longest. 0 if nothing occurs.
  int longest_match() {
    int longest = 0;
    int too_long = std::min(options_.max_match, static_cast<int>(text_.size())) + 1;
    while (too_long - longest > 1) {
      const int middle = (longest + too_long) / 2;
      const bool occurs = std::ranges::any_of(find_last(middle), &Segment::Range::size);
      (occurs ? longest : too_long) = middle;
    }
    return longest;
  }

  // Reads what follows the last n tokens. Within a segment rows are in the order of the index, so that
  // equal beginnings are neighbours (as far as that order compares; beginnings beyond that are put
  // together all the same).
  void read_rows(int n) {
    const auto ranges = find_last(n);
    int64_t n_found = 0;
    for (const auto& range : ranges) n_found += range.size();
    tokens_.clear();
    runs_.clear();
    for (size_t i = 0; i < ranges.size() && n_found > 0; ++i) {
      const Segment& segment = *segments_now_[i];
      const int32_t first_row = n_rows();
      // Of each segment as many as it has of all that were found.
      const int64_t share = (ranges[i].size() * options_.samples + n_found - 1) / n_found;
      const int64_t end = std::min(ranges[i].end, ranges[i].begin + share);
      for (int64_t rank = ranges[i].begin; rank < end; ++rank) {
        const size_t row = tokens_.size();
        tokens_.resize(row + static_cast<size_t>(options_.branch), Segment::kSeparator);
        const int64_t place = segment.place(rank) + n;
        // A damaged file can say that something stands behind the end.
        if (place < segment.n_tokens()) segment.copy(place, std::span(tokens_).subspan(row));
      }
      runs_.push_back({.token = {}, .begin = first_row, .end = n_rows()});
    }
  }

  // Adds the most frequent beginnings of the rows. A beginning is at most as frequent as one of its own,
  // so taking the most frequent one next keeps a tree. A node's score is its share of the rows and one
  // more, for all that was never seen.
  void grow(int match_length, const DraftLimits& limits, DraftTree& tree) {
    queue_.clear();
    find_longer({.parent = kRoot, .first_run = 0, .end_run = runs_.size()}, 0, kRoot);
    while (tree.size() < std::min(options_.tokens, limits.max_nodes) && !queue_.empty()) {
      const auto [count, depth, order, beginning] = queue_.pop();
      const int32_t node =
          tree.add({.token = runs_[beginning.first_run].token,
                    .parent = beginning.parent,
                    .score = static_cast<float>(count) / (static_cast<float>(n_rows()) + 1.0f),
                    .source = DraftSource::kDatastore,
                    .match_length = match_length});
      if (depth < std::min(limits.max_depth, options_.branch)) find_longer(beginning, depth, node);
    }
  }

  // The beginnings that are one token longer than one of `depth` tokens, which `node` is.
  void find_longer(const Beginning& beginning, int depth, int32_t node) {
    const size_t first = runs_.size();
    for (size_t i = beginning.first_run; i < beginning.end_run; ++i) {
      const Run run = runs_[i];
      for (int32_t begin = run.begin, end; begin < run.end; begin = end) {
        const TokenId token = token_at(begin, depth);
        end = begin + 1;
        while (end < run.end && token_at(end, depth) == token) ++end;
        if (token != Segment::kSeparator) runs_.push_back({.token = token, .begin = begin, .end = end});
      }
    }
    const auto found = std::span(runs_).subspan(first);
    if (!std::ranges::is_sorted(found, {}, &Run::token)) std::ranges::sort(found, {}, &Run::token);
    for (size_t i = first, same; i < runs_.size(); i = same) {
      int32_t count = 0;
      for (same = i; same < runs_.size() && runs_[same].token == runs_[i].token; ++same) {
        count += runs_[same].end - runs_[same].begin;
      }
      queue_.push(count, depth + 1, {.parent = node, .first_run = i, .end_run = same});
    }
  }

  int32_t n_rows() const { return static_cast<int32_t>(tokens_.size()) / options_.branch; }
  TokenId token_at(int32_t row, int column) const {
    return tokens_[static_cast<size_t>(row * options_.branch + column)];
  }

  RestOptions options_;
  const SegmentSource& segments_;
  std::vector<TokenId> text_;
  // Reused from draft to draft.
  std::vector<const Segment*> segments_now_;
  SegmentSearch search_;
  std::vector<TokenId> tokens_;  // a row behind each occurrence, padded with Segment::kSeparator
  std::vector<Run> runs_;        // a segment's rows each, then what is found in them
  BestFirst<int32_t, Beginning> queue_;
};

}  // namespace

std::unique_ptr<RequestDrafter> RestDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<RestRequestDrafter>(options_, segments_, prompt);
}

}  // namespace forerun
