// Counts how often every string of up to `depth` tokens occurs in some texts, and what
// follows it. Texts grow a token at a time, and the oldest can be dropped.
//
// The tree is a trie, compressed along its paths, of the `depth` tokens that begin at each
// place of the texts. A node counts the places that reach the end of its label, and its
// label is a piece of the latest text that runs through it; as texts leave in the order in
// which they came, labels of nodes that stay lie in texts that stay. So there are at most
// two nodes per token.
//
// A place enters the tree once, when all its `depth` tokens (or the end of its text) are
// known; the fewer than `depth` places after it are compared one by one. An appended token
// therefore costs one walk down the tree, instead of moving `depth` open ends through it
// (which is how the published implementation works).
//
// Not thread-safe. Deterministic: the same calls give the same answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/ids.h"
#include "retrieval/child_map.h"
#include "retrieval/node_pool.h"

namespace forerun {

class SuffixTree {
 public:
  explicit SuffixTree(int depth);

  // The open text grows.
  void append(TokenId token);
  // Closes the open text, if it is not empty; the next token begins another one.
  void end_text();
  // Forgets the oldest closed text.
  void drop_oldest_text();

  int depth() const { return depth_; }
  int64_t n_texts() const { return static_cast<int64_t>(texts_.size()); }  // closed ones
  int64_t n_tokens() const { return end_ - oldest_; }
  int64_t n_nodes() const { return static_cast<int64_t>(nodes_.size()); }

  // All occurrences of a string that have a token behind them.
  struct Occurrences {
    int32_t node = ChildMap::kNone;  // in the tree: they run into this node's label
    int32_t used = 0;                // and through so many tokens of it
    std::vector<int64_t> recent;     // outside the tree: the places behind them

    bool empty() const { return node == ChildMap::kNone && recent.empty(); }
  };
  // Overwrites `found`.
  void find(std::span<const TokenId> string, Occurrences& found) const;
  // Of the string with another token at its end. Overwrites `longer`.
  void extend(const Occurrences& string, TokenId token, Occurrences& longer) const;

  struct Continuation {
    TokenId token;
    int64_t count;
    int64_t latest;  // a number that is greater for what was seen later
  };
  // What follows the string at least a `min_share` of the times: most frequent first, of
  // equals the latest first. Returns how often anything follows it.
  int64_t continuations(const Occurrences& string, double min_share,
                        std::vector<Continuation>& out) const;

 private:
  static constexpr int32_t kTop = 0;
  struct Node {
    int64_t begin = 0;  // of the label
    int32_t length = 0;
    int32_t count = 0;  // places that reach the end of the label
    int32_t ended = 0;  // of which so many go no further
    int32_t parent = ChildMap::kNone;
    int32_t slot = 0;                    // where it stands among its parent's children
    std::vector<int32_t> children = {};  // most frequent first
  };

  TokenId token(int64_t place) const { return tokens_[static_cast<size_t>(place - base_)]; }
  std::span<const TokenId> piece(int64_t place, int64_t length) const {
    return std::span(tokens_).subspan(static_cast<size_t>(place - base_), static_cast<size_t>(length));
  }

  void insert(int64_t begin, int64_t end);
  void remove(int64_t begin, int64_t end);
  int32_t split(int32_t node, int32_t length);
  void merge_with_only_child(int32_t node);
  void change_count(int32_t node, int32_t change);
  void take_place_of(int32_t node, int32_t other);
  void settle(int64_t begin);
  void step(Occurrences& string, TokenId next) const;
  static void count_in(std::vector<Continuation>& out, size_t n, const Continuation& next);

  int depth_;
  NodePool<Node> nodes_;
  ChildMap children_;

  // Places number the tokens of all texts from the beginning of time.
  std::vector<TokenId> tokens_;
  int64_t base_ = 0;           // the place of tokens_[0]
  int64_t oldest_ = 0;         // where the oldest text begins
  int64_t end_ = 0;            // behind the last token
  int64_t open_begin_ = 0;     // of the open text
  int64_t settled_ = 0;        // the first place that is not in the tree
  std::deque<int64_t> texts_;  // the ends of closed texts
};

}  // namespace forerun
