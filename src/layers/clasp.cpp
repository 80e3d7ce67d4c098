#include "layers/clasp.h"

#include <algorithm>
#include <cmath>

#include "layers/knapsack.h"

namespace forerun {

void ClaspOptions::describe(OptionVisitor& visitor) {
  when.describe(visitor);
  visitor.visit({.name = "skip", .help = "Share of the layers left out"}, skip, {0.0, 0.9});
}

ClaspSelector::ClaspSelector(const ClaspOptions& options, Executor& executor, const PassCosts& costs)
    : IntervalSelector(options.when), executor_(executor), costs_(costs) {
  const int n_layers = executor.model().config().n_layers;
  n_skipped_ = std::min(static_cast<int>(std::lround(n_layers * options.skip)), n_layers - 1);
}

double ClaspSelector::look_seconds(int n_context) const {
  return costs_.pass(n_skipped_ + 1, n_context);
}

bool ClaspSelector::look(const RequestView& request, size_t /*n_recent*/) {
  TextBlockStates states(executor_, request, request.text().size(), 1);
  const auto choices =
      solve_knapsack(states, {.max_weight = n_skipped_, .min_cosine = -1, .whole_layers = true});
  layers_ = choices.back().layers;
  return true;
}

std::optional<DraftPlan> ClaspSelector::plan(int /*n_context*/) {
  return layers_ ? std::optional(DraftPlan{.layers = *layers_}) : std::nullopt;
}

}  // namespace forerun
