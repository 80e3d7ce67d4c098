// What a tree may grow by, the best first: of equals the deeper, of those what was found first, so that
// the same finds always give the same tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace forerun {

// Keeps its memory when cleared. Not thread-safe.
template <typename Score, typename Item>
class BestFirst {
 public:
  struct Found {
    Score score;
    int32_t depth;
    int32_t order;  // 0: found first
    Item item;

    bool operator<(const Found& other) const {
      if (score != other.score) return score < other.score;
      if (depth != other.depth) return depth < other.depth;
      return order > other.order;
    }
  };

  bool empty() const { return heap_.empty(); }
  void clear() {
    heap_.clear();
    n_found_ = 0;
  }
  void push(Score score, int depth, Item item) {
    heap_.push_back({score, depth, n_found_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end());
  }
  Found pop() {
    std::pop_heap(heap_.begin(), heap_.end());
    Found best = std::move(heap_.back());
    heap_.pop_back();
    return best;
  }

 private:
  std::vector<Found> heap_;
  int32_t n_found_ = 0;
};

}  // namespace forerun
