#include "optimise/local_maximum.h"

#include <nlopt.h>

#include <exception>
#include <memory>
#include <new>

#include "core/check.h"

namespace forerun {
namespace {

struct Freed {
  void operator()(nlopt_opt optimiser) const { nlopt_destroy(optimiser); }
};
using Optimiser = std::unique_ptr<nlopt_opt_s, Freed>;

// What a call from NLopt needs.
struct Climb {
  const Objective& objective;
  nlopt_opt optimiser;
  Maximum best;
  std::exception_ptr failure;
};

// NLopt is C: exceptions wait in `failure`.
double evaluate(unsigned n, const double* x, double* gradient, void* data) {
  auto& climb = *static_cast<Climb*>(data);
  try {
    const std::span<const double> point(x, n);
    const double value = climb.objective(
        point, gradient != nullptr ? std::span<double>(gradient, n) : std::span<double>());
    if (climb.best.n_evaluations++ == 0 || value > climb.best.value) {
      climb.best.value = value;
      climb.best.point.assign(point.begin(), point.end());
    }
    return value;
  } catch (...) {
    climb.failure = std::current_exception();
    nlopt_force_stop(climb.optimiser);
    return 0;
  }
}

}  // namespace

Maximum local_maximum(const LocalSearch& search, const Objective& objective,
                      std::span<const double> start) {
  CHECK(!start.empty() && search.max_evaluations > 0 && search.lower < search.upper);
  const nlopt_algorithm algorithm =
      search.method == LocalMethod::kGradient ? NLOPT_LD_LBFGS : NLOPT_LN_COBYLA;
  const Optimiser optimiser(nlopt_create(algorithm, static_cast<unsigned>(start.size())));
  if (!optimiser) throw std::bad_alloc();
  Climb climb{.objective = objective, .optimiser = optimiser.get(), .best = {}, .failure = nullptr};
  bool is_set_up = nlopt_set_max_objective(optimiser.get(), evaluate, &climb) > 0;
  is_set_up &= nlopt_set_lower_bounds1(optimiser.get(), search.lower) > 0;
  is_set_up &= nlopt_set_upper_bounds1(optimiser.get(), search.upper) > 0;
  is_set_up &= nlopt_set_maxeval(optimiser.get(), search.max_evaluations) > 0;
  is_set_up &= nlopt_set_xtol_abs1(optimiser.get(), search.tolerance) > 0;
  if (search.method == LocalMethod::kDerivativeFree) {
    is_set_up &= nlopt_set_initial_step1(optimiser.get(), search.first_step) > 0;
  }
  CHECK(is_set_up);
  std::vector<double> point(start.begin(), start.end());
  double value = 0;
  // It may say that rounding stopped it, which is an end like another: the best point counts.
  const nlopt_result result = nlopt_optimize(optimiser.get(), point.data(), &value);
  if (climb.failure) std::rethrow_exception(climb.failure);
  if (result == NLOPT_OUT_OF_MEMORY) throw std::bad_alloc();
  CHECK(result != NLOPT_INVALID_ARGS && climb.best.n_evaluations > 0);
  return std::move(climb.best);
}

}  // namespace forerun
