#include "engine/pass_rows.h"

#include <optional>

namespace forerun {

void PassRows::clear() {
  pass_.rows.clear();
  pass_.hidden_at.clear();
  nodes_.clear();
}

void PassRows::add_tree(ActiveRequest& active) {
  KvCells& cells = executor_.cells();
  const SequenceId sequence = active.slot->sequence;
  active.first_row = size();
  active.n_rows = 1 + static_cast<size_t>(active.tree.size());
  const bool best_do = active.request->best_logits_do();
  const auto add = [&](NodeId node, TokenId token) {
    nodes_.push_back(node);
    pass_.rows.push_back(
        {.sequence = sequence, .node = node, .token = token, .logits = true, .best_do = best_do});
  };
  add(cells.extend(sequence).value(), active.request->text().back());
  for (const DraftNode& node : active.tree.nodes()) {
    const NodeId parent = nodes_[active.first_row + static_cast<size_t>(node.parent + 1)];
    add(cells.extend(sequence, parent).value(), node.token);
  }
}

void PassRows::add_unread(ActiveRequest& active, size_t n) {
  const RunningRequest& request = *active.request;
  const size_t n_read = active.slot->text.size();
  active.first_row = size();
  active.n_rows = n;
  const bool is_prompt = request.answer().empty();
  const TextEmbedding* embedding = request.embedding();
  const bool wants_state = is_prompt && request.prompt_state() != nullptr;
  bool has_hidden = false;
  std::optional<NodeId> parent;
  for (size_t i = n_read; i < n_read + n; ++i) {
    parent = executor_.cells().extend(active.slot->sequence, parent);
    nodes_.push_back(parent.value());
    const bool hidden = embedding != nullptr ? embedding->wants(i) : wants_state;
    pass_.rows.push_back({.sequence = active.slot->sequence,
                          .node = *parent,
                          .token = request.text()[i],
                          .logits = is_prompt && embedding == nullptr && i + 1 == active.n_to_read(),
                          .hidden = hidden,
                          .best_do = request.best_logits_do()});
    has_hidden |= hidden;
  }
  if (has_hidden) pass_.hidden_at.assign(1, 2 * executor_.model().config().n_layers);
}

}  // namespace forerun
