#include "request/prompt_state.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/own_sequence.h"

namespace forerun {
void PromptState::add(std::span<const float> row) {
  CHECK(!row.empty() && (n_rows_ == 0 || row.size() == mean_.size()));
  mean_.resize(row.size());
  last_.resize(row.size());
  ++n_rows_;
  double squares = 0;
  for (const float x : row) squares += static_cast<double>(x) * static_cast<double>(x);
  const double size = std::sqrt(squares / static_cast<double>(row.size()));
  const float scale = size > 0 ? static_cast<float>(1 / size) : 0.0f;
  const float share = 1.0f / static_cast<float>(n_rows_);
  for (size_t i = 0; i < row.size(); ++i) {
    last_[i] = row[i] * scale;
    mean_[i] += (last_[i] - mean_[i]) * share;
  }
}

std::optional<PromptState> read_prompt_state(Executor& executor, std::span<const TokenId> prompt) {
  KvCells& cells = executor.cells();
  if (prompt.size() > static_cast<size_t>(cells.n_free())) return std::nullopt;
  const OwnSequence sequence(cells);
  PromptState state;
  Pass pass;
  pass.hidden_at = {2 * executor.model().config().n_layers};
  while (!prompt.empty()) {
    const auto part = prompt.first(std::min(prompt.size(), static_cast<size_t>(executor.max_rows())));
    const std::vector<NodeId> path = cells.extend_chain(sequence.id(), static_cast<int>(part.size()));
    pass.rows.clear();
    for (size_t i = 0; i < part.size(); ++i) {
      pass.rows.push_back(
          {.sequence = sequence.id(), .node = path[i], .token = part[i], .hidden = true});
    }
    const PassResult& result = executor.forward(pass);
    for (size_t row = 0; row < part.size(); ++row) state.add(result.hidden(0, row));
    cells.commit(sequence.id(), path);
    prompt = prompt.subspan(part.size());
  }
  return state;
}

}  // namespace forerun
