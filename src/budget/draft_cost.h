// What drafting with a model takes.
#pragma once

#include <functional>

#include "budget/calibration.h"
#include "model/layer_set.h"

namespace forerun {

struct DraftCost {
  // Of one drafted token with these layers behind `n_context` tokens, of each of so many requests.
  std::function<double(const LayerSet& layers, int n_context, int n_requests)> token_seconds;
  const CostCurve* curve;  // of passes of the model that drafts
};

// Of the model that verifies, with layers left out. The costs outlive it.
DraftCost self_draft_cost(const Calibration& costs);

}  // namespace forerun
