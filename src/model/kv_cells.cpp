#include "model/kv_cells.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {

KvCells::KvCells(int n_cells) : references_(static_cast<size_t>(n_cells)), n_free_(n_cells) {
  CHECK(n_cells > 0);
}

SequenceId KvCells::create() {
  const auto dead =
      std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return !s.alive; });
  const auto index = dead - sequences_.begin();
  if (dead == sequences_.end()) sequences_.emplace_back();
  Sequence& seq = sequences_[static_cast<size_t>(index)];
  seq.alive = true;
  return SequenceId{static_cast<int32_t>(index)};
}

void KvCells::reserve(SequenceId sequence, int n_tokens) {
  get(sequence).cells.reserve(static_cast<size_t>(n_tokens));
}

SequenceId KvCells::fork(SequenceId source, int n_tokens) {
  CHECK(n_tokens >= 0 && n_tokens <= n_committed(source));
  const SequenceId fork = create();
  const Sequence& from = get(source);
  Sequence& to = get(fork);
  to.cells.assign(from.cells.begin(), from.cells.begin() + n_tokens);
  for (const int32_t cell : to.cells) ++references_[static_cast<size_t>(cell)];
  return fork;
}

void KvCells::remove(SequenceId sequence) {
  truncate(sequence, 0);
  get(sequence).alive = false;
}

void KvCells::truncate(SequenceId sequence, int n_tokens) {
  CHECK(n_tokens >= 0 && n_tokens <= n_committed(sequence));
  rollback(sequence);
  Sequence& seq = get(sequence);
  for (; static_cast<int>(seq.cells.size()) > n_tokens; seq.cells.pop_back()) release(seq.cells.back());
}

bool KvCells::exists(SequenceId sequence) const {
  const auto index = static_cast<size_t>(to_int(sequence));
  return index < sequences_.size() && sequences_[index].alive;
}

int KvCells::n_committed(SequenceId sequence) const {
  return static_cast<int>(get(sequence).cells.size());
}

std::span<const int32_t> KvCells::committed_cells(SequenceId sequence) const {
  return get(sequence).cells;
}

std::optional<NodeId> KvCells::extend(SequenceId sequence, std::optional<NodeId> parent) {
  if (!parent) return branch_at(sequence, Position{n_committed(sequence)});
  Sequence& seq = get(sequence);
  const Node& above = get(seq, *parent);
  return add(seq, acquire(),
             {.cell = 0,
              .parent = to_int(*parent),
              .position = above.position + 1,
              .root_position = above.root_position});
}

std::vector<NodeId> KvCells::extend_chain(SequenceId sequence, int n) {
  std::vector<NodeId> chain;
  std::optional<NodeId> end;
  for (int i = 0; i < n; ++i) {
    end = extend(sequence, end);
    CHECK(end.has_value());
    chain.push_back(*end);
  }
  return chain;
}

std::optional<NodeId> KvCells::branch_at(SequenceId sequence, Position position) {
  CHECK(to_int(position) >= 0 && to_int(position) <= n_committed(sequence));
  return add(get(sequence), acquire(),
             {.cell = 0, .parent = -1, .position = position, .root_position = position});
}

std::optional<NodeId> KvCells::add(Sequence& sequence, std::optional<int32_t> cell, Node node) {
  if (!cell) return std::nullopt;
  node.cell = *cell;
  sequence.nodes.push_back(node);
  return NodeId{static_cast<int32_t>(sequence.nodes.size()) - 1};
}

int KvCells::n_scratch(SequenceId sequence) const {
  return static_cast<int>(get(sequence).nodes.size());
}

Position KvCells::position(SequenceId sequence, NodeId node) const {
  return get(get(sequence), node).position;
}

int32_t KvCells::cell(SequenceId sequence, NodeId node) const {
  return get(get(sequence), node).cell;
}

std::optional<NodeId> KvCells::parent(SequenceId sequence, NodeId node) const {
  const int32_t parent = get(get(sequence), node).parent;
  return parent < 0 ? std::nullopt : std::optional(NodeId{parent});
}

std::optional<int32_t> KvCells::cell_at(SequenceId sequence, NodeId node, Position position) const {
  if (to_int(position) < 0) return std::nullopt;
  const Sequence& seq = get(sequence);
  const Node* at = &get(seq, node);
  if (position < at->root_position) return seq.cells[static_cast<size_t>(to_int(position))];
  while (at->position > position && at->parent >= 0) at = &seq.nodes[static_cast<size_t>(at->parent)];
  return at->position == position ? std::optional(at->cell) : std::nullopt;
}

void KvCells::commit(SequenceId sequence, std::span<const NodeId> path) {
  Sequence& seq = get(sequence);
  int32_t above = -1;
  for (const NodeId id : path) {
    const Node& node = get(seq, id);
    CHECK(node.parent == above);
    CHECK(to_int(node.position) == static_cast<int32_t>(seq.cells.size()));
    seq.cells.push_back(node.cell);
    ++references_[static_cast<size_t>(node.cell)];
    above = to_int(id);
  }
  rollback(sequence);
}

void KvCells::rollback(SequenceId sequence) {
  Sequence& seq = get(sequence);
  for (const Node& node : seq.nodes) release(node.cell);
  seq.nodes.clear();
}

KvCells::Sequence& KvCells::get(SequenceId sequence) {
  CHECK(exists(sequence));
  return sequences_[static_cast<size_t>(to_int(sequence))];
}

const KvCells::Sequence& KvCells::get(SequenceId sequence) const {
  CHECK(exists(sequence));
  return sequences_[static_cast<size_t>(to_int(sequence))];
}

const KvCells::Node& KvCells::get(const Sequence& sequence, NodeId node) {
  CHECK(to_int(node) >= 0 && static_cast<size_t>(to_int(node)) < sequence.nodes.size());
  return sequence.nodes[static_cast<size_t>(to_int(node))];
}

std::optional<int32_t> KvCells::acquire() {
  if (n_free_ == 0) return std::nullopt;
  while (references_[static_cast<size_t>(first_free_)] != 0) ++first_free_;
  const int32_t cell = first_free_++;
  references_[static_cast<size_t>(cell)] = 1;
  --n_free_;
  used_span_ = std::max(used_span_, cell + 1);
  return cell;
}

void KvCells::release(int32_t cell) {
  CHECK(references_[static_cast<size_t>(cell)] > 0);
  if (--references_[static_cast<size_t>(cell)] > 0) return;
  ++n_free_;
  first_free_ = std::min(first_free_, cell);
  while (used_span_ > 0 && references_[static_cast<size_t>(used_span_ - 1)] == 0) --used_span_;
}

}  // namespace forerun
