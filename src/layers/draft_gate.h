// Whether drafting with a model, or some of its layers, pays, by what became of earlier drafts and
// what they took.
//
// Drafts of retrieval cost nothing, so that it is enough to prune them; those of the model cost
// passes, which must be decided on before they are made. While they do not pay, a short one is
// made now and then, ever more rarely, to see whether they would.
//
// A model of its own must read the text before it can draft. That is worth it where what is left
// of the answer pays it back; and only a small part of the time is staked on a model of which
// nothing is known, or nothing good.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "budget/calibration.h"
#include "budget/draft_cost.h"
#include "budget/draft_value.h"
#include "layers/agreement_count.h"
#include "layers/layer_selector.h"

namespace forerun {

// What a draft would be made for.
struct DraftSituation {
  int n_context = 0;        // tokens of the text
  int n_requests = 1;       // that get a token by the same pass, and are thought to draft alike
  double rival = 0;         // tokens per second that can be had without it, if more than plainly
  double read_seconds = 0;  // that go by before it can begin: once, not for every draft
  double n_left = std::numeric_limits<double>::infinity();  // tokens the answer is likely to get
};

class DraftGate {
 public:
  // The costs, of the model that verifies, outlive it.
  DraftGate(const Calibration& costs, DraftCost draft) : costs_(costs), draft_(std::move(draft)) {}
  // Of that model itself with layers left out.
  explicit DraftGate(const Calibration& costs) : DraftGate(costs, self_draft_cost(costs)) {}

  // The plan with the length that pays best; nullopt: none does.
  std::optional<DraftPlan> check(const DraftPlan& plan, const DraftSituation& situation);

  // Tokens per second with the plan that was checked last; 0: there was none.
  double expected_rate(const DraftSituation& situation) const;

  void observe(const ChainOutcome& outcome);
  // So many tokens of a request with this plan took so long.
  void observe_cost(const DraftPlan& plan, int n_context, int n_tokens, double seconds);

  // How many tokens that may follow to read in a draft's pass beside the one that is known:
  // what their chances (of all of them up to each) are worth.
  int n_ahead(std::span<const double> chances, int n_context, int n_requests = 1) const;

 private:
  std::optional<DraftPlan> explore(const DraftPlan& plan, const DraftSituation& situation);
  DraftValue value(const LayerSet& layers, int max_tokens, const DraftSituation& situation) const;
  double plain_seconds(const DraftSituation& situation) const;  // of a token
  // Whether so much may be staked on what drafts are thought to be worth.
  bool dares(const DraftSituation& situation) const;

  const Calibration& costs_;
  DraftCost draft_;
  std::optional<LayerSet> layers_;  // that what follows is about
  AgreementCount count_;
  int64_t n_tested_ = 0;        // drafted tokens, of any layers
  double cost_factor_ = 1;      // measured over expected
  int n_refusals_ = 0;          // since the last draft
  double refused_seconds_ = 0;  // the steps of these
  int pause_ = 0;               // refusals before the next try
};

}  // namespace forerun
