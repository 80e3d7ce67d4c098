// Whole layers left out, chosen by a dynamic programme over one token: CLaSp.
//
// Chen et al., "CLaSp: In-Context Layer Skip for Self-Speculative Decoding", ACL 2025. A fixed
// number of layers goes; which, is found over the latest token's states by the recursion of
// knapsack.h. The paper does so after every verification, its public re-implementation every
// 64 steps, as here by default.
#pragma once

#include <optional>

#include "cost/pass_costs.h"
#include "layers/interval_selector.h"
#include "model/executor.h"

namespace forerun {

struct ClaspOptions {
  IntervalOptions when = {};
  double skip = 0.25;  // share of the layers left out

  void describe(OptionVisitor& visitor);
};

class ClaspSelector final : public IntervalSelector {
 public:
  // The executor and the costs outlive it.
  ClaspSelector(const ClaspOptions& options, Executor& executor, const PassCosts& costs);

 private:
  bool look(const RequestView& request, size_t n_recent) override;
  std::optional<DraftPlan> plan(int n_context) override;
  double look_seconds(int n_context) const override;

  Executor& executor_;
  const PassCosts& costs_;
  int n_skipped_;
  std::optional<LayerSet> layers_;
};

}  // namespace forerun
