#include "retrieval/continuation_trie.h"

#include <algorithm>

namespace forerun {

void ContinuationTrie::clear() {
  nodes_.assign(1, Node{});
  children_.clear();
  path_.assign(1, 0);
}

uint32_t ContinuationTrie::find_or_add(uint32_t parent, TokenId token, int match_length) {
  const int32_t known = children_.find(static_cast<int32_t>(parent), token);
  if (known != ChildMap::kNone) return static_cast<uint32_t>(known);
  const auto child = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({token, 0.0f, match_length, 0, 0, nodes_[parent].first_child});
  nodes_[parent].first_child = child;
  children_.set(static_cast<int32_t>(parent), token, static_cast<int32_t>(child));
  return child;
}

void ContinuationTrie::insert(std::span<const TokenId> continuation, int match_length, float weight) {
  size_t depth = 0;
  while (depth < continuation.size() && depth + 1 < path_.size() &&
         nodes_[path_[depth + 1]].token == continuation[depth]) {
    ++depth;
  }
  path_.resize(depth + 1);
  for (; depth < continuation.size(); ++depth) {
    path_.push_back(find_or_add(path_[depth], continuation[depth], match_length));
  }
  for (const uint32_t node : path_) {
    nodes_[node].weight += weight;
    ++nodes_[node].n_seen;
  }
}

void ContinuationTrie::children(uint64_t handle, std::vector<Candidate>& out) const {
  const size_t n_before = out.size();
  const Node& parent = nodes_[handle];
  for (uint32_t child = parent.first_child; child != 0; child = nodes_[child].next_sibling) {
    const Node& node = nodes_[child];
    out.push_back({node.token, std::min(node.weight / parent.weight, 1.0f), child, node.match_length,
                   node.n_seen});
  }
  std::reverse(out.begin() + static_cast<ptrdiff_t>(n_before), out.end());
}

}  // namespace forerun
