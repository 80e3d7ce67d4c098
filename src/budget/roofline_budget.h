// SSSD's own rule for the size of a tree (Marzollo et al., "SSSD: Simply-Scalable
// Speculative Decoding", and its published engine): as many rows as the hardware computes
// in the time it needs to read the weights, divided by the requests that share a pass,
// with the caps of that engine.
//
// There the ratio is that of a large matrix product to a large addition. Here it comes from
// the measured curve: the time of a pass of one row, which is bound by memory, over the
// time a row takes in a large pass, which is bound by arithmetic. For 16-bit weights both
// are the same number.
#pragma once

#include "budget/cost_curve.h"
#include "budget/tree_budget.h"

namespace forerun {

class RooflineBudget final : public TreeBudget {
 public:
  RooflineBudget(const CostCurve& curve, bool has_accelerator);

  int max_nodes(RequestId, const PassPlan& plan) override { return n_nodes(plan.n_decoding); }

  // Of one tree, when so many requests share a pass: the root is not counted.
  int n_nodes(int n_requests) const;

 private:
  int ratio_;
};

}  // namespace forerun
