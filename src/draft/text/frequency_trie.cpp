#include "draft/text/frequency_trie.h"

#include "core/check.h"

namespace forerun {

int32_t FrequencyTrie::add(std::span<const TokenId> branch) {
  CHECK(!branch.empty());
  const int32_t tree = child_or_new(kTop, branch.front());
  at(tree).frequency += 1.0f;
  const int n_before = n_nodes();
  int32_t node = tree;
  for (const TokenId token : branch.subspan(1)) {
    node = child_or_new(node, token);
    at(node).frequency += 1.0f;
  }
  at(tree).n_below += n_nodes() - n_before;
  return tree;
}

int32_t FrequencyTrie::find(std::span<const TokenId> branch) const {
  int32_t node = kTop;
  for (const TokenId token : branch) node = child(node, token);
  return node;
}

int32_t FrequencyTrie::child_or_new(int32_t parent, TokenId token) {
  int32_t node = children_.find(parent, token);
  if (node != kNone) return node;
  if (free_.empty()) {
    node = static_cast<int32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = free_.back();
    free_.pop_back();
  }
  at(node) = {.token = token, .next_sibling = at(parent).first_child};
  at(parent).first_child = node;
  children_.set(parent, token, node);
  if (parent == kTop) ++n_trees_;
  return node;
}

void FrequencyTrie::squeeze(int32_t tree) {
  at(tree).n_below = squeeze_children(tree);
}

// Returns how many nodes are left below `parent`.
int FrequencyTrie::squeeze_children(int32_t parent) {
  int n_left = 0;
  int32_t kept = kNone;  // the last child that stays
  for (int32_t node = at(parent).first_child, next; node != kNone; node = next) {
    next = at(node).next_sibling;
    if (at(node).frequency > 1.0f) {
      at(node).frequency *= 0.5f;
      n_left += 1 + squeeze_children(node);
      kept = node;
    } else {
      (kept == kNone ? at(parent).first_child : at(kept).next_sibling) = next;
      erase(parent, node);
    }
  }
  return n_left;
}

// Of a node that is no longer among its parent's children, and of all below it.
void FrequencyTrie::erase(int32_t parent, int32_t node) {
  for (int32_t child = at(node).first_child, next; child != kNone; child = next) {
    next = at(child).next_sibling;
    erase(node, child);
  }
  children_.erase(parent, at(node).token);
  free_.push_back(node);
}

}  // namespace forerun
