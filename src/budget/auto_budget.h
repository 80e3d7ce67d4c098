// Verifies what pays, and nothing when nothing does.
//
// For every pass it chooses the nodes, of all trees together, that give the most tokens
// per second: with the chances of the nodes in falling order (a child's is never above its
// parent's, so that every beginning of that list is a forest), it takes the k for which
//
//   (requests + sum of the first k chances) / seconds of a pass with k more rows
//
// is largest. Chances are learnt from what became of earlier drafts, verified or not
// (acceptance_model.h), seconds are measured (calibration.h) and kept right by the passes
// themselves. While drafts do not pay they are made only now and then, to see whether they
// would: so text that cannot be foreseen costs next to nothing, and neither does finding drafts
// for a model that is faster than that (draft_account.h).
#pragma once

#include <map>
#include <vector>

#include "budget/acceptance_model.h"
#include "budget/cost_curve.h"
#include "budget/draft_account.h"
#include "budget/tree_budget.h"

namespace forerun {

class AutoBudget final : public TreeBudget {
 public:
  struct Options {
    int max_nodes = 48;  // of one tree
  };
  AutoBudget(CostCurve curve, const Options& options);

  int max_nodes(RequestId request, const PassPlan& plan) override;
  void choose(std::span<Proposal> proposals, const PassPlan& plan) override;
  void observe(const Outcome& outcome) override;
  void observe(const PassCost& cost) override;
  void forget(RequestId request) override;

 private:
  struct RequestState {
    RequestAcceptance acceptance;
    int n_idle = 0;        // drafts in a row of which nothing was verified
    int n_until_next = 0;  // passes to go without a draft
    bool has_draft = false;
  };
  struct Candidate {
    double chance;
    int proposal;
    int32_t node;
  };
  void settle(const PassCost& cost);
  // The last point of the curve that has no more rows.
  size_t point_of(int n_rows) const;
  // That of the nearest point with any observations.
  double correction(int n_rows) const;

  CostCurve curve_;
  Options options_;
  AcceptanceModel acceptance_;
  std::map<RequestId, RequestState> requests_;
  DraftAccount account_;
  // For the pass that is put together: whether drafts are worth asking for, and were.
  bool wants_drafts_ = true;
  bool has_asked_ = false;
  // The pass before, whose tokens are counted until the next one begins.
  struct LastPass {
    bool has_asked = false;
    double seconds = 0;  // drafting included
    double plain_seconds = 0;
    int n_requests = 0;
    int n_tokens = 0;
  };
  LastPass last_;
  // How measured passes compare with the curve, per point of it.
  struct Correction {
    double factor = 1.0;
    int n_observed = 0;
  };
  std::vector<Correction> corrections_;

  std::vector<Candidate> candidates_;
  std::vector<double> chances_;
  std::vector<int> n_kept_;
};

}  // namespace forerun
