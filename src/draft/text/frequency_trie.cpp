#include "draft/text/frequency_trie.h"

#include "core/check.h"

namespace forerun {

void FrequencyTrie::add(std::span<const TokenId> branch) {
  CHECK(!branch.empty());
  const int32_t tree = count_child(kTop, branch.front());
  const int n_before = n_nodes();
  int32_t node = tree;
  for (const TokenId token : branch.subspan(1)) node = count_child(node, token);
  nodes_[tree].n_below += n_nodes() - n_before;
}

int32_t FrequencyTrie::find(std::span<const TokenId> branch) const {
  int32_t node = kTop;
  for (const TokenId token : branch) node = child(node, token);
  return node;
}

int32_t FrequencyTrie::count_child(int32_t parent, TokenId token) {
  int32_t node = children_.find(parent, token);
  if (node == kNone) {
    node = nodes_.add({.token = token, .next_sibling = nodes_[parent].first_child});
    nodes_[parent].first_child = node;
    children_.set(parent, token, node);
    if (parent == kTop) ++n_trees_;
  }
  nodes_[node].frequency += 1.0f;
  return node;
}

// Returns how many nodes are left below `parent`.
int FrequencyTrie::squeeze_children(int32_t parent) {
  int n_left = 0;
  int32_t kept = kNone;  // the last child that stays
  for (int32_t node = nodes_[parent].first_child, next; node != kNone; node = next) {
    next = nodes_[node].next_sibling;
    const int n_below = squeeze_children(node);
    if (nodes_[node].frequency > 1.0f) {
      nodes_[node].frequency *= 0.5f;
      n_left += 1 + n_below;
      kept = node;
    } else {  // none of those below it was added more often
      (kept == kNone ? nodes_[parent].first_child : nodes_[kept].next_sibling) = next;
      children_.erase(parent, nodes_[node].token);
      nodes_.erase(node);
    }
  }
  return n_left;
}

}  // namespace forerun
