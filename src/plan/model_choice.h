// Which model drafts for a request, if any, and how far.
//
// Drafts of a model cost passes, so they are decided on before they are made, and again after each
// token: what the next few are likely to add to what texts propose there, against what drafting and
// verifying them takes. Of several that seem to pay, those draft first that are not known yet. While no
// model pays for a request, a short draft is made now and then, ever more rarely, to see whether one
// would.
//
// A model with a cache of its own must read the text before it can draft. That is worth it where what
// is left of the answer pays it back, beside what models bring that draft at once; and only a small part
// of the time is staked on a model of which nothing is known. What a trial takes beyond its stake is
// saved up again before the next.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cost/pass_costs.h"
#include "plan/acceptance_model.h"
#include "plan/planner.h"

namespace forerun {

// What time is worth in the pass that is planned.
struct PassWorth {
  double tokens_per_second = 0;  // that all requests together get in the long run
  double plain_seconds = 0;      // of a pass without drafts
  int n_requests = 1;
  int n_rows = 1;  // without drafts
};

class ModelChoice {
 public:
  // All outlive it. `now` tells the time in seconds.
  ModelChoice(const DrafterSet& drafters, const PassCosts& costs, const AcceptanceModel& acceptance,
              const std::function<double()>& now);

  // Lets models draft where that pays. What they draft joins each request's proposals; where
  // distributions are compared, it takes their place.
  void draft(std::span<const PlanJob> jobs, const PassWorth& worth);

 private:
  class ChainRule;
  // What a model would draft.
  struct Offer {
    size_t model = 0;
    DraftPlan plan;
    double gain = 0;           // tokens, less what the time it takes is worth
    bool is_trial = false;     // to see what its drafts are worth
    double trial_seconds = 0;  // that one is expected to take
  };
  // When a model that does not pay is tried again.
  struct Trials {
    int n_refusals = 0;
    double saved_seconds = 0;  // for the next try, of the time since the last one
    int pause = 0;             // refusals before the next try
    bool is_granted = false;   // one in this pass, which shows what there is to see
  };
  std::optional<Offer> best_offer(RequestPlan& request, const PassWorth& worth);
  void withdraw(std::span<const PlanJob> jobs, std::span<std::optional<Offer>> offers,
                const PassWorth& worth) const;
  enum class Beside { kTexts, kNothing };
  double gain_of(const Offer& offer, const RequestPlan& request, const PassWorth& worth, int n_sharing,
                 int n_most = kMostLevels, Beside beside = Beside::kTexts) const;
  bool is_known(size_t model) const;
  bool may_read(const Offer& offer, const RequestPlan& request, const PassWorth& worth) const;
  // Counts the refusal.
  bool is_time_to_try(Offer& offer, const RequestPlan& request, const PassWorth& worth);
  // As a trial, with so many refusals to the next.
  Offer tried(Offer offer, int pause);
  // Those of a model among the drafts of a pass.
  struct TrialsOfPass {
    int n = 0;
    double seconds = 0;  // that they are expected to take
  };
  // Drafts with a model, and keeps account of what trials take.
  void draft_with(size_t model, std::span<const ModelDraftJob> jobs, const TrialsOfPass& trials);

  const DrafterSet& drafters_;
  const PassCosts& costs_;
  const AcceptanceModel& acceptance_;
  const std::function<double()>& now_;
  std::vector<Trials> trials_;  // per model
};

}  // namespace forerun
