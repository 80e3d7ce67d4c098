#include "retrieval/fusion.h"

#include <algorithm>

namespace forerun {

bool Fusion::worse(const Item& a, const Item& b) {
  if (a.score != b.score) return a.score < b.score;
  if (a.depth != b.depth) return a.depth < b.depth;
  return a.rank > b.rank;
}

void Fusion::propose(const FusionSource& source, uint64_t handle, const Item& base) {
  children_.clear();
  source.tree->children(handle, children_);
  for (const Candidate& child : children_) {
    const auto rank = static_cast<int32_t>(proposals_.size());
    proposals_.push_back({child, &source});
    heap_.push_back({base.score * child.share, base.depth, rank, base.parent});
    std::push_heap(heap_.begin(), heap_.end(), worse);
  }
}

void Fusion::fuse(std::span<const FusionSource> sources, const FusionLimits& limits, DraftTree& tree) {
  heap_.clear();
  proposals_.clear();
  if (limits.max_depth < 1) return;
  for (const FusionSource& source : sources)
    propose(source, source.handle, {source.discount, 1, 0, kRoot});
  while (!heap_.empty() && tree.size() < limits.max_nodes) {
    std::pop_heap(heap_.begin(), heap_.end(), worse);
    const Item item = heap_.back();
    heap_.pop_back();
    const Candidate candidate = proposals_[static_cast<size_t>(item.rank)].candidate;
    const FusionSource& source = *proposals_[static_cast<size_t>(item.rank)].source;
    int32_t node;
    if (const auto known = tree.find_child(item.parent, candidate.token)) {
      node = *known;
    } else {
      // Whatever is above the limit goes with all that is below it.
      if (tree.n_children(item.parent) >= limits.max_children) continue;
      const int match_length = candidate.match_length > 0 ? candidate.match_length : source.match_length;
      node = tree.add(
          {candidate.token, item.parent, item.score, source.source, match_length, candidate.n_seen});
    }
    if (item.depth < limits.max_depth) {
      propose(source, candidate.handle, {item.score * source.factor, item.depth + 1, 0, node});
    }
  }
}

}  // namespace forerun
