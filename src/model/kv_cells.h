// Which cells of the KV cache belong to which sequence: bookkeeping only, no
// tensors.
//
// The cache is one pool of cells, each holding the keys and values of one token in
// every layer. A sequence is an ordered list of committed cells, its cell i being
// the token at position i; sequences with a common prefix share its cells. On top
// of them a sequence has scratch cells for tokens that are not verified yet. They
// form a forest: a scratch node hangs either below another scratch node or below a
// place in the committed text, and sees exactly its ancestors and itself. Passes
// may fill and refill scratch cells as often as they like; commit() and rollback()
// decide what stays.
//
// Not thread-safe. Breaking a precondition is a bug (CHECK); running out of cells
// is an ordinary outcome (nullopt).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"

namespace forerun {

class KvCells {
 public:
  explicit KvCells(int n_cells);

  int n_cells() const { return static_cast<int>(references_.size()); }
  int n_free() const { return n_free_; }
  // One past the highest cell in use: attention needs to look no further.
  int n_used_span() const { return used_span_; }

  // --- sequences ---

  SequenceId create();
  // Lets a sequence grow to so many tokens without allocating memory.
  void reserve(SequenceId sequence, int n_tokens);
  // A new sequence that shares the first `n_tokens` committed cells of `source`.
  SequenceId fork(SequenceId source, int n_tokens);
  void remove(SequenceId sequence);
  // Forgets the committed text behind its first `n_tokens`, and every scratch node.
  void truncate(SequenceId sequence, int n_tokens);
  bool exists(SequenceId sequence) const;

  int n_committed(SequenceId sequence) const;
  // The committed cells in position order. Valid until the sequence changes.
  std::span<const int32_t> committed_cells(SequenceId sequence) const;

  // --- scratch nodes ---

  // A new node at the end of the committed text, or below `parent`. Nodes of a
  // sequence are numbered 0, 1, 2, ... since its last commit or rollback.
  // nullopt: no free cell.
  std::optional<NodeId> extend(SequenceId sequence, std::optional<NodeId> parent = std::nullopt);
  // `n` new nodes, each below the one before, the first at the end of the committed text. There are as
  // many free cells.
  std::vector<NodeId> extend_chain(SequenceId sequence, int n);
  // A new node at `position` <= n_committed that sees the committed text before it:
  // another version of what is committed from there on. It cannot be committed
  // unless `position` is n_committed.
  std::optional<NodeId> branch_at(SequenceId sequence, Position position);

  int n_scratch(SequenceId sequence) const;
  Position position(SequenceId sequence, NodeId node) const;
  int32_t cell(SequenceId sequence, NodeId node) const;
  std::optional<NodeId> parent(SequenceId sequence, NodeId node) const;

  // Calls visit(cell) for every cell that `node` sees, itself included, whose
  // position is at most `window` - 1 before its own (window 0: all of them).
  template <typename Visit>
  void for_each_visible(SequenceId sequence, NodeId node, int window, Visit visit) const;
  // The cell of the token at `position` on the way to `node`; nullopt: there is none.
  std::optional<int32_t> cell_at(SequenceId sequence, NodeId node, Position position) const;

  // Appends the cells of `path` (a chain of nodes whose first hangs at the end of
  // the committed text; may be empty) to the committed text and forgets every other
  // scratch node of the sequence.
  void commit(SequenceId sequence, std::span<const NodeId> path);
  // Forgets every scratch node of the sequence.
  void rollback(SequenceId sequence);

 private:
  struct Node {
    int32_t cell;
    int32_t parent;  // node index, or -1
    Position position;
    Position root_position;  // committed cells below it are visible
  };
  struct Sequence {
    bool alive = false;
    std::vector<int32_t> cells;
    std::vector<Node> nodes;
  };

  Sequence& get(SequenceId sequence);
  const Sequence& get(SequenceId sequence) const;
  static const Node& get(const Sequence& sequence, NodeId node);
  std::optional<int32_t> acquire();
  void release(int32_t cell);
  static std::optional<NodeId> add(Sequence& sequence, std::optional<int32_t> cell, Node node);

  std::vector<uint32_t> references_;  // how many sequences and nodes use each cell
  int n_free_;
  int first_free_ = 0;  // no free cell below it
  int used_span_ = 0;
  std::vector<Sequence> sequences_;  // index: SequenceId
};

template <typename Visit>
void KvCells::for_each_visible(SequenceId sequence, NodeId node, int window, Visit visit) const {
  const Sequence& seq = get(sequence);
  const Node& self = get(seq, node);
  const int32_t first = window > 0 ? to_int(self.position) - window + 1 : 0;
  for (int32_t i = first > 0 ? first : 0; i < to_int(self.root_position); ++i) {
    visit(seq.cells[static_cast<size_t>(i)]);
  }
  for (const Node* at = &self;; at = &seq.nodes[static_cast<size_t>(at->parent)]) {
    if (to_int(at->position) >= first) visit(at->cell);
    if (at->parent < 0) break;
  }
}

}  // namespace forerun
