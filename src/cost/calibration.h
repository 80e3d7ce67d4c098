// Measures what passes cost on this machine, with this model, device and thread count.
//
// That takes seconds to minutes, so nobody waits for it who did not ask (`forerun calibrate`, searches
// for layers): engines learn the same from the passes they compute anyway (pass_costs.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "cost/cost_curve.h"
#include "model/executor.h"

namespace forerun {

struct Calibration {
  CostCurve curve;
  BlockCosts blocks;
};

// Measures passes over random tokens. Where texts leave no room in the executor's cache, in a cache of
// its own; the executor's is as before afterwards. `progress` gets the share that is done; may be empty.
// Throws Error when the device fails.
Calibration calibrate(Executor& executor, const std::function<void(double)>& progress);

// Times of passes by their number of rows, ascending, made plausible: something else may have run
// meanwhile, longer than medians endure. A pass takes no longer than one with more rows, nor
// than several with fewer.
std::vector<double> without_outliers(std::span<const int> n_rows, std::vector<double> seconds);

}  // namespace forerun
