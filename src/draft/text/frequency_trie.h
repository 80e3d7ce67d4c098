// Branches of tokens with how often they were added.
//
// A branch begins at the top; adding it counts every node on its way. Frequencies fall
// along every path. A tree is what hangs below one first token.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/check.h"
#include "core/ids.h"
#include "retrieval/child_map.h"
#include "retrieval/node_pool.h"

namespace forerun {

class FrequencyTrie {
 public:
  static constexpr int32_t kTop = 0;
  static constexpr int32_t kNone = ChildMap::kNone;

  // The branch is not empty.
  void add(std::span<const TokenId> branch) {
    CHECK(!branch.empty());
    const int32_t tree = count_child(kTop, branch.front());
    const int n_before = n_nodes();
    int32_t node = tree;
    for (const TokenId token : branch.subspan(1)) node = count_child(node, token);
    nodes_[tree].n_below += n_nodes() - n_before;
  }

  // The node at the end of these tokens, or kNone.
  int32_t find(std::span<const TokenId> branch) const {
    int32_t node = kTop;
    for (const TokenId token : branch) node = child(node, token);
    return node;
  }
  // kNone if `node` is kNone or has no such child.
  int32_t child(int32_t node, TokenId token) const {
    return node == kNone ? kNone : children_.find(node, token);
  }
  int32_t first_child(int32_t node) const { return node == kNone ? kNone : nodes_[node].first_child; }
  int32_t next_sibling(int32_t node) const { return nodes_[node].next_sibling; }
  TokenId token(int32_t node) const { return nodes_[node].token; }
  float frequency(int32_t node) const { return node == kNone ? 0.0f : nodes_[node].frequency; }

  // Forgets the nodes below `tree`, a child of the top, that were added at most once, and
  // halves the frequencies of the others.
  void squeeze(int32_t tree) { nodes_[tree].n_below = squeeze_children(tree); }

  // First tokens are not counted: there are at most as many as the vocabulary has.
  int n_nodes() const { return static_cast<int>(children_.size()) - n_trees_; }
  int n_nodes(int32_t tree) const { return nodes_[tree].n_below; }

 private:
  struct Node {
    TokenId token{};
    float frequency = 0.0f;
    int32_t first_child = kNone;
    int32_t next_sibling = kNone;
    int32_t n_below = 0;  // of children of the top alone
  };

  int32_t count_child(int32_t parent, TokenId token) {
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
  int squeeze_children(int32_t parent) {
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

  NodePool<Node> nodes_;
  ChildMap children_;
  int n_trees_ = 0;
};

}  // namespace forerun
