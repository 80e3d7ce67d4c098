#include "retrieval/fusion.h"

namespace forerun {

void Fusion::propose(const FusionSource& source, uint64_t handle, const Place& place) {
  children_.clear();
  source.tree->children(handle, children_);
  for (const Candidate& child : children_) {
    proposals_.push_back({child, &source});
    queue_.push(place.score * child.share, place.depth, place.parent);
  }
}

void Fusion::fuse(std::span<const FusionSource> sources, const FusionLimits& limits, DraftTree& tree) {
  queue_.clear();
  proposals_.clear();
  if (limits.max_depth < 1) return;
  for (const FusionSource& source : sources)
    propose(source, source.handle, {.parent = kRoot, .depth = 1, .score = source.discount});
  while (!queue_.empty() && tree.size() < limits.max_nodes) {
    const auto [score, depth, order, parent] = queue_.pop();
    const Candidate candidate = proposals_[static_cast<size_t>(order)].candidate;
    const FusionSource& source = *proposals_[static_cast<size_t>(order)].source;
    int32_t node;
    if (const auto known = tree.find_child(parent, candidate.token)) {
      node = *known;
    } else {
      // Whatever is above the limit goes with all that is below it.
      if (tree.n_children(parent) >= limits.max_children) continue;
      const int match_length = candidate.match_length > 0 ? candidate.match_length : source.match_length;
      node = tree.add({candidate.token, parent, score, source.source, match_length, candidate.n_seen});
    }
    if (depth < limits.max_depth) {
      propose(source, candidate.handle,
              {.parent = node, .depth = depth + 1, .score = score * source.factor});
    }
  }
}

}  // namespace forerun
