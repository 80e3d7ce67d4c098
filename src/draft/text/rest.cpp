#include "draft/text/rest.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "retrieval/segment_search.h"

namespace forerun {
namespace {

// The tokens behind some occurrences, a row each, padded with Segment::kSeparator. Within a
// segment rows are in the order of the index, so that equal beginnings are neighbours (as
// far as that order compares; beginnings beyond that are put together all the same).
struct Rows {
  int width = 0;
  std::vector<TokenId> tokens;
  std::vector<int32_t> ends;  // of each segment's rows

  int n_rows() const { return ends.empty() ? 0 : ends.back(); }
  TokenId at(int32_t row, int column) const {
    return tokens[static_cast<size_t>(row) * static_cast<size_t>(width) + static_cast<size_t>(column)];
  }
};

// Neighbouring rows that are alike up to a column.
struct Run {
  TokenId token;
  int32_t begin;
  int32_t end;
};

// Grows the tree of the most frequent beginnings. A beginning is at most as frequent as one
// of its own, so taking the most frequent one next keeps a tree.
class RestGrower {
 public:
  // Until `tree` has `size` nodes, none deeper than `depth`. A node's score is its share of
  // the rows and one more, for all that was never seen.
  void grow(const Rows& rows, int size, int depth, int match_length, DraftTree& tree) {
    heap_.clear();
    runs_.clear();
    n_found_ = 0;
    int32_t begin = 0;
    for (const int32_t end : rows.ends) {
      runs_.push_back({.token = {}, .begin = begin, .end = end});
      begin = end;
    }
    find_candidates(rows, {.n_runs = static_cast<int32_t>(runs_.size())}, kRoot);
    while (tree.size() < size && !heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate next = heap_.back();
      heap_.pop_back();
      const int32_t node =
          tree.add({.token = runs_[static_cast<size_t>(next.first_run)].token,
                    .parent = next.parent,
                    .score = static_cast<float>(next.count) / (static_cast<float>(rows.n_rows()) + 1.0f),
                    .source = DraftSource::kDatastore,
                    .match_length = match_length});
      if (next.depth < std::min(depth, rows.width)) find_candidates(rows, next, node);
    }
  }

 private:
  // A beginning: the runs of rows that have it.
  struct Candidate {
    int32_t count = 0;  // of rows
    int depth = 0;
    int order = 0;  // of discovery
    int32_t first_run = 0;
    int32_t n_runs = 0;
    int32_t parent = kRoot;

    bool operator<(const Candidate& other) const {
      if (count != other.count) return count < other.count;
      if (depth != other.depth) return depth < other.depth;
      return order > other.order;
    }
  };

  // The beginnings that are one token longer.
  void find_candidates(const Rows& rows, const Candidate& parent, int32_t node) {
    const auto first = static_cast<int32_t>(runs_.size());
    for (int32_t i = parent.first_run; i < parent.first_run + parent.n_runs; ++i) {
      const Run run = runs_[static_cast<size_t>(i)];
      for (int32_t begin = run.begin, end; begin < run.end; begin = end) {
        const TokenId token = rows.at(begin, parent.depth);
        end = begin + 1;
        while (end < run.end && rows.at(end, parent.depth) == token) ++end;
        if (token != Segment::kSeparator) runs_.push_back({.token = token, .begin = begin, .end = end});
      }
    }
    const auto found = std::span(runs_).subspan(static_cast<size_t>(first));
    if (!std::ranges::is_sorted(found, {}, &Run::token)) std::ranges::sort(found, {}, &Run::token);
    const auto last = static_cast<int32_t>(runs_.size());
    for (int32_t i = first; i < last;) {
      Candidate next = {.depth = parent.depth + 1, .order = n_found_++, .first_run = i, .parent = node};
      const TokenId token = runs_[static_cast<size_t>(i)].token;
      for (; i < last && runs_[static_cast<size_t>(i)].token == token; ++i) {
        next.count += runs_[static_cast<size_t>(i)].end - runs_[static_cast<size_t>(i)].begin;
        ++next.n_runs;
      }
      heap_.push_back(next);
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  std::vector<Candidate> heap_;
  std::vector<Run> runs_;
  int n_found_ = 0;
};

class RestRequestDrafter : public RequestDrafter {
 public:
  RestRequestDrafter(const RestOptions& options, const SegmentSource& segments,
                     std::span<const TokenId> prompt)
      : options_(options), segments_(segments) {
    append(prompt);
  }

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const int size = std::min(options_.tokens, limits.max_nodes);
    if (size < 1 || limits.max_depth < 1 || !limits.from_stores || !segments_) return;
    const auto list = segments_();
    if (!list) return;
    segments_now_.clear();
    for (const auto& segment : *list) segments_now_.push_back(segment.get());
    for (int n = longest_match(); n >= options_.min_match; --n) {
      if (!read_rows(n)) continue;
      grower_.grow(rows_, size, limits.max_depth, n, tree);
      return;
    }
  }

  void append(std::span<const TokenId> tokens) override {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    const auto n_kept = static_cast<size_t>(options_.max_match);
    if (text_.size() > n_kept) text_.erase(text_.begin(), text_.end() - static_cast<ptrdiff_t>(n_kept));
  }

 private:
  std::span<const TokenId> query(int n) const { return std::span(text_).last(static_cast<size_t>(n)); }

  // What occurs has ends that occur, so halving finds the longest. 0 if nothing occurs.
  int longest_match() {
    const auto occurs = [&](int n) {
      return std::ranges::any_of(search_.find(segments_now_, query(n)),
                                 [](const auto& range) { return range.size() > 0; });
    };
    int longest = 0;
    int too_long = std::min(options_.max_match, static_cast<int>(text_.size())) + 1;
    while (too_long - longest > 1) {
      const int middle = (longest + too_long) / 2;
      (occurs(middle) ? longest : too_long) = middle;
    }
    return longest;
  }

  // Fills rows_ with what follows the last n tokens; false if nothing does.
  bool read_rows(int n) {
    const auto ranges = search_.find(segments_now_, query(n));
    int64_t n_found = 0;
    for (const auto& range : ranges) n_found += range.size();
    rows_.width = options_.branch;
    rows_.tokens.clear();
    rows_.ends.clear();
    bool any = false;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const int64_t end = ranges[i].begin + share(ranges[i].size(), n_found);
      for (int64_t rank = ranges[i].begin; rank < end; ++rank) {
        any |= add_row(*segments_now_[i], segments_now_[i]->place(rank) + n);
      }
      rows_.ends.push_back(static_cast<int32_t>(rows_.tokens.size()) / rows_.width);
    }
    return any;
  }

  // Of `size` occurrences among `n_found`: how many to look at.
  int64_t share(int64_t size, int64_t n_found) const {
    if (n_found <= options_.samples) return size;
    return std::min(size, (size * options_.samples + n_found - 1) / n_found);
  }

  // False if nothing stands there.
  bool add_row(const Segment& segment, int64_t place) {
    const size_t begin = rows_.tokens.size();
    rows_.tokens.resize(begin + static_cast<size_t>(rows_.width), Segment::kSeparator);
    // A damaged file can say that something stands behind the end.
    return place < segment.n_tokens() && segment.copy(place, std::span(rows_.tokens).subspan(begin)) > 0;
  }

  RestOptions options_;
  const SegmentSource& segments_;
  std::vector<TokenId> text_;  // its end
  std::vector<const Segment*> segments_now_;
  SegmentSearch search_;
  Rows rows_;
  RestGrower grower_;
};

}  // namespace

void RestOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"max-match", "Tokens to match at most"}, max_match, {1, Segment::kOrderDepth});
  visitor.visit({"min-match", "Tokens to match at least"}, min_match, {1, Segment::kOrderDepth});
  visitor.visit({"samples", "Occurrences to look at"}, samples, {1, 1'000'000});
  visitor.visit({"branch", "Tokens to read behind each occurrence"}, branch, {1, 256});
  visitor.visit({"tokens", "Tokens to draft at most"}, tokens, {1, 1024});
}

std::unique_ptr<RequestDrafter> RestDrafter::begin(std::span<const TokenId> prompt) {
  return std::make_unique<RestRequestDrafter>(options_, segments_, prompt);
}

}  // namespace forerun
