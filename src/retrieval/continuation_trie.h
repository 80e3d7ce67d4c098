// What followed in the texts that were sampled, as a trie with weights.
//
// Filled anew for every draft. Continuations that are inserted one after the other are
// best alike, as they are in the order of an index: what they share is not looked up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "retrieval/candidate_tree.h"
#include "retrieval/child_map.h"

namespace forerun {

// Not thread-safe. Keeps its memory when cleared.
class ContinuationTrie : public CandidateTree {
 public:
  static constexpr uint64_t kRootHandle = 0;

  ContinuationTrie() { clear(); }

  void clear();

  // Adds a continuation of a text of which `match_length` tokens were matched. It may be
  // empty: then something ended there, which makes whatever follows less likely.
  void insert(std::span<const TokenId> continuation, int match_length, float weight = 1.0f);

  // The weight of all continuations.
  float weight() const { return nodes_[0].weight; }
  // Without the root.
  int n_nodes() const { return static_cast<int>(nodes_.size()) - 1; }

  // Those seen after longer matches first, then those seen earlier.
  void children(uint64_t handle, std::vector<Candidate>& out) const override;

 private:
  struct Node {
    TokenId token;
    float weight;
    int32_t match_length;
    int32_t n_seen;
    uint32_t first_child;  // the one added last; 0: none
    uint32_t next_sibling;
  };

  uint32_t find_or_add(uint32_t parent, TokenId token, int match_length);

  std::vector<Node> nodes_;
  ChildMap children_;
  // The last continuation: its nodes, the root first.
  std::vector<uint32_t> path_;
};

}  // namespace forerun
