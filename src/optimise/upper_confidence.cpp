#include "optimise/upper_confidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "optimise/local_maximum.h"

namespace forerun {
namespace {

constexpr int kProbesAtOnce = 256;

std::vector<double> random_point(int n_dimensions, Random& random) {
  std::vector<double> point(static_cast<size_t>(n_dimensions));
  for (double& x : point) x = random.uniform();
  return point;
}

PromisingPoint best_probe(const GaussianProcess& process, const UpperConfidenceOptions& options,
                          Random& random) {
  PromisingPoint best{.point = {}, .bound = -std::numeric_limits<double>::infinity()};
  for (int begin = 0; begin < options.n_probes; begin += kProbesAtOnce) {
    // A column is a point.
    Eigen::MatrixXd probes(process.n_dimensions(), std::min(kProbesAtOnce, options.n_probes - begin));
    for (double& x : probes.reshaped()) x = random.uniform();
    const std::vector<Prediction> predictions = process.predict(probes);
    for (size_t i = 0; i < predictions.size(); ++i) {
      const double bound = predictions[i].mean + options.kappa * predictions[i].deviation;
      if (bound <= best.bound) continue;
      const auto probe = probes.col(static_cast<Eigen::Index>(i));
      best = {.point = {probe.begin(), probe.end()}, .bound = bound};
    }
  }
  return best;
}

}  // namespace

double upper_confidence(const GaussianProcess& process, double kappa, std::span<const double> point,
                        std::span<double> gradient) {
  if (gradient.empty()) {
    const Prediction prediction = process.predict(point);
    return prediction.mean + kappa * prediction.deviation;
  }
  std::vector<double> deviation_gradient(gradient.size());
  const Prediction prediction = process.predict(point, gradient, deviation_gradient);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += kappa * deviation_gradient[i];
  return prediction.mean + kappa * prediction.deviation;
}

PromisingPoint most_promising(const GaussianProcess& process, const UpperConfidenceOptions& options,
                              Random& random) {
  if (!(options.kappa >= 0) || !std::isfinite(options.kappa) || options.n_probes < 1 ||
      options.n_random_starts < 0 || options.max_evaluations < 0) {
    fail(ErrorCode::kInvalidArgument,
         "upper confidence bound: kappa and counts must not be negative, with 1 or more probes");
  }
  PromisingPoint best = best_probe(process, options, random);
  if (process.n_observations() == 0 || options.max_evaluations == 0) return best;
  std::vector<std::vector<double>> starts = {best.point, process.best_point()};
  for (int i = 0; i < options.n_random_starts; ++i) {
    starts.push_back(random_point(process.n_dimensions(), random));
  }
  const LocalSearch search{.method = LocalMethod::kGradient, .max_evaluations = options.max_evaluations};
  const auto bound = [&](std::span<const double> point, std::span<double> gradient) {
    return upper_confidence(process, options.kappa, point, gradient);
  };
  for (const std::vector<double>& start : starts) {
    Maximum found = local_maximum(search, bound, start);
    if (found.value > best.bound) best = {.point = std::move(found.point), .bound = found.value};
  }
  return best;
}

}  // namespace forerun
