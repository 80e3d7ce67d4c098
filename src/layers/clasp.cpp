#include "layers/clasp.h"

#include <algorithm>
#include <cmath>

#include "layers/knapsack.h"

namespace forerun {
namespace {

class ClaspSelector final : public IntervalSelector {
 public:
  ClaspSelector(const ClaspOptions& options, const SelectorResources& resources)
      : IntervalSelector(options.when, resources) {
    const int n_layers = resources.executor.model().config().n_layers;
    n_skipped_ = std::min(static_cast<int>(std::lround(n_layers * options.skip)), n_layers - 1);
  }

 private:
  bool look(const RequestView& request, const RecentText& /*recent*/) override {
    TextBlockStates states(executor_, request, request.text().size(), 1);
    const KnapsackOptions options{.max_weight = n_skipped_, .min_cosine = -1, .whole_layers = true};
    plan_ = DraftPlan{.layers = solve_knapsack(states, options).back().layers};
    return true;
  }
  double look_seconds(int n_context) const override { return costs_.pass(n_skipped_ + 1, n_context); }

  int n_skipped_;
};

}  // namespace

void ClaspOptions::describe(OptionVisitor& visitor) {
  when.describe(visitor);
  visitor.visit({"skip", "Share of the layers left out"}, skip, {0.0, 0.9});
}

std::unique_ptr<LayerSelector> make_clasp(const ClaspOptions& options,
                                          const SelectorResources& resources) {
  return std::make_unique<ClaspSelector>(options, resources);
}

}  // namespace forerun
