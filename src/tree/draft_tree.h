// Tokens proposed to follow a text: a tree below its last token.
//
// Flat arrays, one entry per node. A node's parent comes before it, or is kRoot: the last
// token of the text, which is no node. Siblings have different tokens, so that a text
// picks at most one path. Siblings are tried in the order of their indices.
//
// A value; drafters fill it, the engine turns nodes into rows of a pass, verification
// walks it.
#pragma once

#include <forerun/statistics.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "sampling/sampler.h"

namespace forerun {

constexpr int32_t kRoot = -1;

struct DraftNode {
  TokenId token{};
  int32_t parent = kRoot;
  // The drafter's estimate of the chance that the text takes this node. At most its
  // parent's.
  float score = 0.0f;
  DraftSource source = DraftSource::kInput;
  // How many tokens of the text were matched to find it; 0 where that means nothing.
  int32_t match_length = 0;
  // How often it was seen to follow; 0: nobody counted.
  int32_t n_seen = 0;
  // What a model that drafts says of it, if it was asked what follows the parent; else below 0.
  float probability = -1.0f;
  // Which of several drafters proposed it, a bit for each; 1 where there is one.
  uint8_t proposers = 1;
};
constexpr size_t kMaxProposers = 5;

class DraftTree {
 public:
  int size() const { return static_cast<int>(nodes_.size()); }
  bool empty() const { return nodes_.empty(); }
  const DraftNode& operator[](int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  const std::vector<DraftNode>& nodes() const { return nodes_; }

  // 1 for children of the root, which itself has depth 0.
  int depth(int32_t node) const { return node == kRoot ? 0 : links_[static_cast<size_t>(node)].depth; }
  int max_depth() const { return max_depth_; }

  // The children of a node in the order they were added: first_child, then next_sibling
  // until kNone; or all of them in a loop, which adds none.
  static constexpr int32_t kNone = -2;
  int32_t first_child(int32_t node) const { return ends(node).first; }
  int32_t next_sibling(int32_t node) const { return links_[static_cast<size_t>(node)].next_sibling; }
  struct Siblings {
    const DraftTree* tree;
    int32_t at;

    Siblings begin() const { return *this; }
    Siblings end() const { return {.tree = tree, .at = kNone}; }
    int32_t operator*() const { return at; }
    void operator++() { at = tree->next_sibling(at); }
    bool operator!=(const Siblings& other) const { return at != other.at; }
  };
  Siblings children(int32_t node) const { return {.tree = this, .at = first_child(node)}; }
  int n_children(int32_t node) const { return ends(node).count; }

  // The chance that the text takes the node, as its drafter has it; it is at the root already.
  float score(int32_t node) const { return node == kRoot ? 1.0f : (*this)[node].score; }

  // The child of `parent` (or of the root) with this token, or nullopt.
  std::optional<int32_t> find_child(int32_t parent, TokenId token) const;

  // Adds a node and returns its index. The parent exists and has no child with this token.
  int32_t add(const DraftNode& node);
  // Adds tokens that follow the root one behind the other, as nodes like `node`, whose score is the
  // first one's; each of the others has `decay` of the score of the one before it.
  void add_chain(std::span<const TokenId> tokens, DraftNode node, float decay);

  // Adds what another drafter proposes: nodes that are there already are proposed again, all
  // with these `proposers`. Of a tree without distributions.
  void merge(const DraftTree& other, uint8_t proposers);
  // A model that drafts was asked what follows the node's parent, and says this of it.
  void set_probability(int32_t node, double probability) {
    nodes_[static_cast<size_t>(node)].probability = static_cast<float>(probability);
  }
  void add_proposer(int32_t node, uint8_t proposer) {
    nodes_[static_cast<size_t>(node)].proposers |= proposer;
  }

  // The distribution that the children of `parent` were drawn from, one after another
  // without replacement, by a drafter that samples. Children without one were chosen, not
  // drawn.
  void set_distribution(int32_t parent, Distribution distribution);
  const Distribution* distribution(int32_t parent) const;
  bool has_distributions() const { return !distributions_.empty(); }

  // Keeps the nodes for which keep[i] is true; a node whose parent goes must go too.
  void prune(const std::vector<bool>& keep);
  // Of the node's children the one with the best of `chances`, which has one for each node; kNone where
  // there is none.
  int32_t likeliest_child(int32_t node, std::span<const double> chances) const;
  // The nodes of the likeliest path from the root.
  std::vector<bool> likeliest_path(std::span<const double> chances) const;
  // Keeps the path with the best scores.
  void prune_to_chain();

  void clear();

 private:
  struct Children {
    int32_t first = kNone;
    int32_t last = kNone;
    int32_t count = 0;
  };
  struct Links {
    int32_t depth;
    int32_t next_sibling = kNone;
    Children children;
  };
  const Children& ends(int32_t node) const {
    return node == kRoot ? root_ : links_[static_cast<size_t>(node)].children;
  }
  Children& ends(int32_t node) {
    return node == kRoot ? root_ : links_[static_cast<size_t>(node)].children;
  }

  std::vector<DraftNode> nodes_;
  std::vector<Links> links_;
  Children root_;
  int max_depth_ = 0;
  std::vector<std::pair<int32_t, Distribution>> distributions_;
  std::vector<int32_t> places_;  // of another tree's nodes in this one, during merge()
};

}  // namespace forerun
