// Drafts and verifies what pays, and nothing when nothing does.
//
// What it maximises is tokens over time in the long run. While text comes at some rate, a second is
// worth that many tokens; so a node is worth verifying while its chance exceeds what its row takes times
// that rate, and a token is worth drafting while what it is likely to add exceeds the same for the pass
// that drafts it. Chances are learnt (acceptance_model.h), costs come from the passes themselves
// (cost/pass_costs.h), the rate is that of the request's last steps (SpeedRecord).
//
// A pass is planned in three steps:
//   texts    what costs next to nothing is always asked; its proposals become one tree. Datastores are
//            asked as long as they earn what that usually takes; without them the rest is still asked
//   models   the one that promises most drafts a chain behind the text, token by token, as long as that
//            pays beside what texts propose there (model_choice.h); the chain joins the tree, and what
//            the model says of the other proposals makes them likelier or not
//   choose   of all requests' nodes, the likeliest first, as many as pay
//
// Rules that compare distributions get what one model drew, all of it, or what texts propose, and never
// both: which of them is decided before anything is drawn.
#pragma once

#include <functional>
#include <vector>

#include "core/share_out.h"
#include "core/stopwatch.h"
#include "cost/pass_costs.h"
#include "plan/draft_account.h"
#include "plan/model_choice.h"
#include "plan/planner.h"

namespace forerun {

class CostPlanner final : public Planner {
 public:
  // The costs are of the model that verifies, and outlive it. Texts of several requests are looked up by
  // `share_out`. `now` tells the time in seconds.
  CostPlanner(
      DrafterSet drafters, const PassCosts& costs, TreeSize largest = [](int) { return kLargestTree; },
      ShareOut share_out = one_after_other, std::function<double()> now = steady_seconds);

  void observe(const PassCost& cost) override;
  void append(RequestPlan& request, std::span<const TokenId> tokens) override;

  Learnt learnt() const override;
  void restore(const Learnt& learnt) override;

 private:
  struct Candidate {
    double chance;
    size_t job;
    int32_t node;
  };
  void fill(std::span<const PlanJob> jobs, const PassLoad& load) override;
  void propose_texts(std::span<const PlanJob> jobs);
  void add_proposals(RequestDrafter& drafter, const PlanJob& job, uint8_t bit) const;
  void choose(std::span<const PlanJob> jobs);
  // The candidates that there are, the likeliest first, and the rows that are verified anyway.
  int list_candidates(std::span<const PlanJob> jobs);
  size_t n_worth_verifying(std::span<const PlanJob> jobs, int n_fixed);

  const PassCosts& costs_;
  ShareOut share_out_;
  std::function<double()> now_;
  AcceptanceModel acceptance_;
  ModelChoice models_;
  // Of looking texts up: with datastores, for what these bring, and without them.
  DraftAccount of_stores_, of_texts_;
  bool asks_stores_ = true, asks_texts_ = true;
  double search_seconds_ = 0;  // with datastores
  double lookup_seconds_ = 0;  // all that texts take
  SpeedRecord usual_speed_;    // of all requests
  int64_t n_tokens_ = 0;       // that were learnt from

  // The pass that is planned.
  PassWorth worth_;
  // The pass before, whose tokens are counted until the next one.
  struct LastPass {
    double seconds = 0;  // drafting included
    double plain_seconds = 0;
    int n_requests = 0;
    int n_tokens = 0;
    int n_from_stores = 0;  // of these
    int n_planned = 0;      // requests that got them
  };
  LastPass last_;
  void settle();

  // Reused from pass to pass.
  std::vector<Candidate> candidates_;
  std::vector<int> n_kept_;
  std::vector<std::vector<bool>> keep_;
};

}  // namespace forerun
