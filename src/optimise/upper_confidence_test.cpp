#include "optimise/upper_confidence.h"

#include <forerun/error.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "optimise/local_maximum.h"

namespace forerun {
namespace {

using Point = std::vector<double>;

GaussianProcess some_process(int n_dimensions, int n, uint64_t seed) {
  GaussianProcess process(n_dimensions);
  process.set_length(0.3 * std::sqrt(n_dimensions));
  Random random(seed);
  for (int i = 0; i < n; ++i) {
    Point point(static_cast<size_t>(n_dimensions));
    double score = 0;
    for (double& x : point) {
      x = random.uniform();
      score += std::sin(7 * x);
    }
    process.add(point, score);
  }
  return process;
}

TEST(LocalMaximum, ClimbsWithinTheBox) {
  // Its peak at 1.5 lies outside in the first dimension.
  const Objective objective = [](std::span<const double> x, std::span<double> gradient) {
    if (!gradient.empty()) {
      gradient[0] = -2 * (x[0] - 1.5);
      gradient[1] = -2 * (x[1] - 0.25);
    }
    return -(x[0] - 1.5) * (x[0] - 1.5) - (x[1] - 0.25) * (x[1] - 0.25);
  };
  for (const LocalMethod method : {LocalMethod::kGradient, LocalMethod::kDerivativeFree}) {
    const Maximum found = local_maximum({.method = method}, objective, Point{0.1, 0.9});
    EXPECT_NEAR(found.point[0], 1, 1e-4);
    EXPECT_NEAR(found.point[1], 0.25, 1e-4);
    EXPECT_NEAR(found.value, -0.25, 1e-4);
  }
}

TEST(LocalMaximum, KeepsToItsLimitAndPassesErrorsOn) {
  int n_calls = 0;
  const Objective slope = [&](std::span<const double> x, std::span<double> gradient) {
    ++n_calls;
    std::fill(gradient.begin(), gradient.end(), std::cos(40 * x[0]));
    return std::sin(40 * x[0]) / 40;
  };
  const Maximum found = local_maximum({.max_evaluations = 3}, slope, Point{0.5});
  EXPECT_EQ(n_calls, found.n_evaluations);
  EXPECT_LE(n_calls, 4);  // its line search looks once more
  const Objective broken = [](std::span<const double>, std::span<double>) -> double {
    throw std::runtime_error("broken");
  };
  EXPECT_THROW(local_maximum({}, broken, Point{0.5}), std::runtime_error);
}

TEST(UpperConfidence, GradientAgreesWithDifferences) {
  const GaussianProcess process = some_process(8, 40, 1);
  Random random(2);
  for (int trial = 0; trial < 10; ++trial) {
    Point point(8);
    for (double& x : point) x = random.uniform();
    Point gradient(8);
    const double bound = upper_confidence(process, 2.5, point, gradient);
    EXPECT_NEAR(bound, upper_confidence(process, 2.5, point), 1e-12);
    const Prediction prediction = process.predict(point);
    EXPECT_NEAR(bound, prediction.mean + 2.5 * prediction.deviation, 1e-12);
    for (size_t i = 0; i < 8; ++i) {
      Point above = point;
      Point below = point;
      above[i] += 1e-5;
      below[i] -= 1e-5;
      const double difference =
          upper_confidence(process, 2.5, above) - upper_confidence(process, 2.5, below);
      EXPECT_NEAR(gradient[i], difference / 2e-5, 1e-6);
    }
  }
}

TEST(UpperConfidence, FindsTheMaximumOfAFineGrid) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (const int n_dimensions : {1, 2}) {
      const GaussianProcess process = some_process(n_dimensions, 12, seed);
      double on_grid = -1e300;
      const int n_steps = n_dimensions == 1 ? 10'000 : 100;
      for (int i = 0; i <= n_steps; ++i) {
        for (int j = 0; j <= (n_dimensions == 1 ? 0 : n_steps); ++j) {
          const Point all = {double(i) / n_steps, double(j) / n_steps};
          on_grid =
              std::max(on_grid, upper_confidence(process, 2.5, {all.data(), size_t(n_dimensions)}));
        }
      }
      Random random(seed);
      // Few probes, so that the local searches have something to do.
      const PromisingPoint found =
          most_promising(process, {.kappa = 2.5, .n_probes = 10, .n_random_starts = 5}, random);
      EXPECT_GE(found.bound, on_grid - 1e-6);
      EXPECT_LE(found.bound, on_grid + 1e-2);
      EXPECT_NEAR(found.bound, upper_confidence(process, 2.5, found.point), 1e-9);
      for (const double x : found.point) EXPECT_TRUE(x >= 0 && x <= 1);
    }
  }
}

TEST(UpperConfidence, LocalSearchImprovesOnProbesInManyDimensions) {
  const GaussianProcess process = some_process(60, 80, 4);
  Random probing(1);
  Random climbing(1);
  const PromisingPoint probed =
      most_promising(process, {.n_probes = 500, .max_evaluations = 0}, probing);
  const PromisingPoint climbed = most_promising(process, {.n_probes = 500}, climbing);
  EXPECT_GT(climbed.bound, probed.bound + 0.1);
  for (const double x : climbed.point) EXPECT_TRUE(x >= 0 && x <= 1);
}

TEST(UpperConfidence, IsDeterministicForASeed) {
  const GaussianProcess process = some_process(10, 20, 5);
  const auto point = [&](uint64_t seed) {
    Random random(seed);
    return most_promising(process, {.n_probes = 300, .n_random_starts = 0, .max_evaluations = 2}, random)
        .point;
  };
  EXPECT_EQ(point(1), point(1));
  EXPECT_NE(point(1), point(2));
}

TEST(UpperConfidence, RejectsWhatMakesNoSense) {
  const GaussianProcess process = some_process(2, 3, 6);
  Random random(1);
  EXPECT_THROW(most_promising(process, {.kappa = NAN}, random), Error);
  EXPECT_THROW(most_promising(process, {.n_probes = 0}, random), Error);
}

}  // namespace
}  // namespace forerun
