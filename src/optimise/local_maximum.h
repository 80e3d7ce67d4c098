// A local maximum of a function on a box, found by NLopt.
//
// Limits are on evaluations and changes, never on time: the same call finds the same point.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace forerun {

// The value at a point. A `gradient` that is not empty is filled too.
using Objective = std::function<double(std::span<const double> point, std::span<double> gradient)>;

enum class LocalMethod {
  kGradient,        // L-BFGS (Nocedal 1980; Luksan's variant for bounds); asks for gradients
  kDerivativeFree,  // COBYLA (Powell 1994), for few dimensions
};

struct LocalSearch {
  LocalMethod method = LocalMethod::kGradient;
  // The box, the same in every dimension.
  double lower = 0;
  double upper = 1;
  // The first step of a search without derivatives.
  double first_step = 0.1;
  int max_evaluations = 100;
  // Ends when a step changes no coordinate by more than this.
  double tolerance = 1e-6;
};

struct Maximum {
  std::vector<double> point;
  double value = 0;
  int n_evaluations = 0;
};

// The best point that was evaluated on the way up from `start`, which lies in the box. What
// `objective` throws passes through.
Maximum local_maximum(const LocalSearch& search, const Objective& objective,
                      std::span<const double> start);

}  // namespace forerun
