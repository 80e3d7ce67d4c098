// Whether drafting with a model, or some of its layers, pays, by what became of earlier drafts and
// what they took.
//
// Drafts of retrieval cost nothing, so that it is enough to prune them; those of the model cost
// passes, which must be decided on before they are made. While they do not pay, a short one is
// made now and then, ever more rarely, to see whether they would.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <span>

#include "budget/calibration.h"
#include "budget/draft_cost.h"
#include "budget/draft_value.h"
#include "layers/agreement_count.h"
#include "layers/layer_selector.h"

namespace forerun {

class DraftGate {
 public:
  // The costs, of the model that verifies, outlive it.
  DraftGate(const Calibration& costs, DraftCost draft) : costs_(costs), draft_(std::move(draft)) {}
  // Of that model itself with layers left out.
  explicit DraftGate(const Calibration& costs) : DraftGate(costs, self_draft_cost(costs)) {}

  // The plan with the length that pays best behind `n_context` tokens; nullopt: none does.
  // `rival`: tokens per second that can be had without it; plain decoding's if lower.
  std::optional<DraftPlan> check(const DraftPlan& plan, int n_context, double rival);

  // Tokens per second with the plan that was checked last; 0: there was none.
  double expected_rate(int n_context) const;

  void observe(const ChainOutcome& outcome);
  // So many tokens of a request with this plan took so long.
  void observe_cost(const DraftPlan& plan, int n_context, int n_tokens, double seconds);

  // How many tokens that may follow to read in a draft's pass beside the one that is known:
  // what their chances (of all of them up to each) are worth.
  int n_ahead(std::span<const double> chances, int n_context) const;

 private:
  std::optional<DraftPlan> explore(const DraftPlan& plan);
  DraftValue value(const LayerSet& layers, int max_tokens, int n_context) const;

  const Calibration& costs_;
  DraftCost draft_;
  std::optional<LayerSet> layers_;  // that what follows is about
  AgreementCount count_;
  double cost_factor_ = 1;  // measured over expected
  int n_refusals_ = 0;      // since the last draft
  int pause_ = 0;           // refusals before the next try
};

}  // namespace forerun
