// The n-grams of a request's own text, prompt and answer: the input's part of SSSD
// (Marzollo et al., ACL 2026, Algorithm 1).
//
// A trie of the windows of the text: from each place the next few tokens, each node with
// the number of windows that pass through it. Two ways of taking windows:
//
// - growing: a window belongs to the trie from its first token on and grows with the text,
//   so that a repetition is seen as soon as it begins, and continuations run from prompt
//   into answer. What ends a text counts for nothing.
// - complete: as in the authors' code. Windows of the prompt end with it, except that its
//   last few tokens belong to the answer; windows of the answer are inserted when they are
//   complete. A window that ends at a node counts there, though nothing follows.
//
// Most windows are unlike all others from some depth on. From there a window is not stored:
// the node points to the text, and is unfolded when another window comes to it. So memory
// and time per token are those of the few nodes that repeat.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "retrieval/candidate_tree.h"
#include "retrieval/child_map.h"

namespace forerun {

enum class WindowRule { kGrowing, kComplete };

struct InputTrieOptions {
  WindowRule rule = WindowRule::kGrowing;
  int max_match = 4;    // tokens of a query that are matched at most
  int window = 8;       // tokens of a window, those that a query matches among them
  int prompt_tail = 3;  // tokens of the prompt that belong to the answer (kComplete)
};

// One per sequence. Not thread-safe.
class InputTrie : public CandidateTree {
 public:
  explicit InputTrie(const InputTrieOptions& options);

  // Begins a text with a prompt. A text before it stays in the trie, but no window goes
  // from one text into the next.
  void put(std::span<const TokenId> prompt);
  // The text goes on.
  void append(std::span<const TokenId> tokens);

  struct Match {
    uint64_t handle;  // for children()
    int length;
  };
  // Appends where the last tokens of `query` occur, for each number of them from
  // max_match down to 1.
  void find(std::span<const TokenId> query, std::vector<Match>& out) const;

  // Those that were seen first most recently come first.
  void children(uint64_t handle, std::vector<Candidate>& out) const override;

  // All texts, one after the other.
  std::span<const TokenId> text() const { return text_; }
  size_t n_bytes() const;

 private:
  struct Node {
    TokenId token;
    uint32_t count;
    uint32_t next_sibling;
    // The child added last (0: none) or, with kFolded, the place of this token in the text,
    // whose next tokens are the only ones below.
    uint32_t below;
  };
  static constexpr uint32_t kFolded = uint32_t{1} << 31;

  // A window that is being inserted: `depth` tokens of it lead to `node`.
  struct Window {
    uint32_t start;
    uint32_t node = 0;
    uint32_t depth = 0;
  };

  bool folded(uint32_t node) const { return (nodes_[node].below & kFolded) != 0; }
  uint32_t place(uint32_t node) const { return nodes_[node].below & ~kFolded; }
  uint32_t size() const { return static_cast<uint32_t>(text_.size()); }

  // The child with this token, or 0.
  uint32_t find_child(uint32_t node, TokenId token) const {
    return static_cast<uint32_t>(std::max(children_.find(static_cast<int32_t>(node), token), 0));
  }
  void add_child(const Window& window, bool fold);
  void unfold(uint32_t node, uint32_t depth, uint32_t limit);
  void extend(Window& window, bool fold);
  void grow(Window& window);
  void insert_complete_windows();
  void close_windows();
  uint64_t walk(std::span<const TokenId> tokens) const;

  InputTrieOptions options_;
  std::vector<TokenId> text_;
  std::vector<Node> nodes_;
  ChildMap children_;
  std::vector<Window> open_;  // kGrowing: not yet complete, the oldest first
  uint32_t next_start_ = 0;   // kComplete: of the next window of the answer
};

}  // namespace forerun
