#include "retrieval/fusion.h"

#include <algorithm>

namespace forerun {

bool Fusion::worse(const Item& a, const Item& b) {
  if (a.score != b.score) return a.score < b.score;
  if (a.depth != b.depth) return a.depth < b.depth;
  return a.rank > b.rank;
}

void Fusion::propose(const FusionSource& source, uint64_t handle, int32_t parent, int32_t depth,
                     float score) {
  children_.clear();
  source.tree->children(handle, children_);
  for (const Candidate& child : children_) {
    heap_.push_back({score * child.share, depth, next_rank_++, parent, &source, child});
    std::push_heap(heap_.begin(), heap_.end(), worse);
  }
}

void Fusion::fuse(std::span<const FusionSource> sources, const FusionLimits& limits, DraftTree& tree) {
  heap_.clear();
  next_rank_ = 0;
  if (limits.max_depth < 1) return;
  for (const FusionSource& source : sources) propose(source, source.handle, kRoot, 1, source.discount);
  while (!heap_.empty() && tree.size() < limits.max_nodes) {
    std::pop_heap(heap_.begin(), heap_.end(), worse);
    const Item item = heap_.back();
    heap_.pop_back();
    int32_t node;
    if (const auto known = tree.find_child(item.parent, item.candidate.token)) {
      node = *known;
    } else {
      // Whatever is above the limit goes with all that is below it.
      if (tree.n_children(item.parent) >= limits.max_children) continue;
      const int match_length =
          item.candidate.match_length > 0 ? item.candidate.match_length : item.source->match_length;
      node =
          tree.add({item.candidate.token, item.parent, item.score, item.source->source, match_length});
    }
    if (item.depth < limits.max_depth) {
      propose(*item.source, item.candidate.handle, node, item.depth + 1,
              item.score * item.source->factor);
    }
  }
}

}  // namespace forerun
