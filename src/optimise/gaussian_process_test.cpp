#include "optimise/gaussian_process.h"

#include <forerun/error.h>
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>
#include <random>
#include <vector>

#include "support/thorough.h"

namespace forerun {
namespace {

using Point = std::vector<double>;

double matern(double distance, double length) {
  const double s = std::sqrt(5.0) * distance / length;
  return (1 + s + s * s / 3) * std::exp(-s);
}

double distance(const Point& a, const Point& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

struct Data {
  std::vector<Point> points;
  std::vector<double> scores;
};

Data random_data(int n, int n_dimensions, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::normal_distribution<double> normal;
  Data data;
  for (int i = 0; i < n; ++i) {
    Point point(static_cast<size_t>(n_dimensions));
    for (double& x : point) x = uniform(random);
    data.points.push_back(point);
    data.scores.push_back(5 + 3 * normal(random));
  }
  return data;
}

GaussianProcess process_of(const Data& data, const GaussianProcessOptions& options, double length) {
  GaussianProcess process(static_cast<int>(data.points[0].size()), options);
  process.set_length(length);
  for (size_t i = 0; i < data.points.size(); ++i) process.add(data.points[i], data.scores[i]);
  return process;
}

// The textbook formulas with an explicit inverse.
struct Naive {
  Naive(const Data& d, double noise, double l) : data(d), length(l) {
    const auto n = static_cast<Eigen::Index>(d.points.size());
    Eigen::MatrixXd covariances(n, n);
    Eigen::VectorXd y(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index j = 0; j < n; ++j) covariances(i, j) = matern(distance(at(i), at(j)), l);
      covariances(i, i) += noise;
      y[i] = d.scores[static_cast<size_t>(i)];
    }
    mean = y.mean();
    scale = std::sqrt((y.array() - mean).square().mean());
    normalised = (y.array() - mean) / scale;
    inverse = covariances.inverse();
    log_determinant = std::log(covariances.determinant());
  }
  const Point& at(Eigen::Index i) const { return data.points[static_cast<size_t>(i)]; }
  Prediction predict(const Point& x) const {
    Eigen::VectorXd k(normalised.size());
    for (Eigen::Index i = 0; i < k.size(); ++i) k[i] = matern(distance(at(i), x), length);
    return {.mean = mean + scale * k.dot(inverse * normalised),
            .deviation = scale * std::sqrt(1 - k.dot(inverse * k))};
  }
  double log_likelihood() const {
    return -0.5 * normalised.dot(inverse * normalised) - 0.5 * log_determinant -
           0.5 * static_cast<double>(normalised.size()) * std::log(2 * std::acos(-1.0));
  }

  const Data& data;
  double length, mean = 0, scale = 1, log_determinant = 0;
  Eigen::VectorXd normalised;
  Eigen::MatrixXd inverse;
};

TEST(GaussianProcess, IsThePriorBeforeAnyObservation) {
  GaussianProcess process(3);
  process.fit();
  const Prediction prediction = process.predict(Point{0.1, 0.2, 0.3});
  EXPECT_EQ(prediction.mean, 0);
  EXPECT_EQ(prediction.deviation, 1);
}

// One observation: normalised to 0 with scale 1, so the mean is its score everywhere, and
// the variance is 1 - k^2 / (1 + noise).
TEST(GaussianProcess, OneObservationByHand) {
  GaussianProcess process(1, {.noise = 0.25});
  process.set_length(0.5);
  process.add(Point{0.5}, 7);
  for (const double x : {0.0, 0.3, 0.5, 1.0}) {
    const double k = matern(std::abs(x - 0.5), 0.5);
    const Prediction prediction = process.predict(Point{x});
    EXPECT_NEAR(prediction.mean, 7, 1e-12);
    EXPECT_NEAR(prediction.deviation, std::sqrt(1 - k * k / 1.25), 1e-12);
  }
}

// Two observations: scores -1 and 1 after normalisation, so that (K + noise)^-1 y is
// y / (1 + noise - k) and the mean (k2 - k1) / (1 + noise - k).
TEST(GaussianProcess, TwoObservationsByHand) {
  GaussianProcess process(1, {.noise = 0.1});
  process.set_length(0.4);
  process.add(Point{0.0}, 2);
  process.add(Point{1.0}, 6);
  const double k = matern(1, 0.4);
  const double k1 = matern(0.3, 0.4);
  const double k2 = matern(0.7, 0.4);
  const double a = 1.1;
  const double variance = 1 - (a * k1 * k1 - 2 * k * k1 * k2 + a * k2 * k2) / (a * a - k * k);
  const Prediction prediction = process.predict(Point{0.3});
  EXPECT_NEAR(prediction.mean, 4 + 2 * (k2 - k1) / (a - k), 1e-12);
  EXPECT_NEAR(prediction.deviation, 2 * std::sqrt(variance), 1e-12);
}

TEST(GaussianProcess, InterpolatesWithoutNoise) {
  const Data data = random_data(15, 3, 1);
  const GaussianProcess process = process_of(data, {.noise = 1e-10}, 0.7);
  for (size_t i = 0; i < data.points.size(); ++i) {
    const Prediction prediction = process.predict(data.points[i]);
    EXPECT_NEAR(prediction.mean, data.scores[i], 1e-4);
    EXPECT_NEAR(prediction.deviation, 0, 1e-3);
  }
}

TEST(GaussianProcess, IsThePriorFarAway) {
  Data data = random_data(10, 2, 2);
  for (Point& point : data.points) point[0] *= 0.1;
  const Naive naive(data, 1e-2, 0.02);
  const Prediction prediction = process_of(data, {}, 0.02).predict(Point{1, 1});
  EXPECT_NEAR(prediction.mean, naive.mean, 1e-6);
  EXPECT_NEAR(prediction.deviation, naive.scale, 1e-6);
}

TEST(GaussianProcess, AgreesWithTheTextbookFormula) {
  for (const double length : {0.2, 1.0, 4.0}) {
    const Data data = random_data(40, 5, 3);
    const Data at = random_data(300, 5, 4);  // more than a block
    const Naive naive(data, 1e-2, length);
    const GaussianProcess process = process_of(data, {}, length);
    Eigen::MatrixXd columns(5, 300);
    for (Eigen::Index i = 0; i < 300; ++i) {
      columns.col(i) = Eigen::Map<const Eigen::VectorXd>(at.points[static_cast<size_t>(i)].data(), 5);
    }
    const std::vector<Prediction> together = process.predict(columns);
    for (size_t i = 0; i < at.points.size(); ++i) {
      const Prediction expected = naive.predict(at.points[i]);
      const Prediction alone = process.predict(at.points[i]);
      EXPECT_NEAR(alone.mean, expected.mean, 1e-8);
      EXPECT_NEAR(alone.deviation, expected.deviation, 1e-8);
      EXPECT_NEAR(together[i].mean, expected.mean, 1e-8);
      EXPECT_NEAR(together[i].deviation, expected.deviation, 1e-8);
    }
    EXPECT_NEAR(process.log_likelihood(length), naive.log_likelihood(), 1e-8);
  }
}

TEST(GaussianProcess, AddingIsRefitting) {
  const Data data = random_data(60, 4, 5);
  const GaussianProcess grown = process_of(data, {}, 0.8);
  GaussianProcess at_once = grown;
  at_once.set_length(0.8);
  EXPECT_EQ(grown.n_factored(), 0);
  EXPECT_EQ(at_once.n_factored(), 60);
  for (const Point& point : random_data(20, 4, 6).points) {
    EXPECT_NEAR(grown.predict(point).mean, at_once.predict(point).mean, 1e-10);
    EXPECT_NEAR(grown.predict(point).deviation, at_once.predict(point).deviation, 1e-10);
  }
}

TEST(GaussianProcess, GradientsAgreeWithDifferences) {
  const GaussianProcess process = process_of(random_data(30, 6, 7), {}, 0.9);
  for (const Point& point : random_data(10, 6, 8).points) {
    std::vector<double> mean(6);
    std::vector<double> deviation(6);
    process.predict(point, mean, deviation);
    for (size_t i = 0; i < 6; ++i) {
      Point above = point;
      Point below = point;
      above[i] += 1e-5;
      below[i] -= 1e-5;
      const Prediction up = process.predict(above);
      const Prediction down = process.predict(below);
      EXPECT_NEAR(mean[i], (up.mean - down.mean) / 2e-5, 1e-6);
      EXPECT_NEAR(deviation[i], (up.deviation - down.deviation) / 2e-5, 1e-6);
    }
  }
}

// Scores drawn from a process of known length, short enough that they vary as its prior does:
// the fitted length is near it, and no other length on a fine grid is likelier.
TEST(GaussianProcess, FindsTheLengthOfItsData) {
  for (const double length : test::thorough<std::vector<double>>({0.1, 0.2, 0.4}, {0.2})) {
    Data data = random_data(150, 2, 9);
    Eigen::MatrixXd covariances(150, 150);
    for (Eigen::Index i = 0; i < 150; ++i) {
      for (Eigen::Index j = 0; j < 150; ++j) {
        covariances(i, j) = matern(
            distance(data.points[static_cast<size_t>(i)], data.points[static_cast<size_t>(j)]), length);
      }
      covariances(i, i) += 1e-2;
    }
    std::mt19937_64 random(10);
    std::normal_distribution<double> normal;
    Eigen::VectorXd white(150);
    for (double& x : white) x = normal(random);
    const Eigen::VectorXd scores = covariances.llt().matrixL() * white;
    data.scores.assign(scores.begin(), scores.end());

    GaussianProcess process = process_of(data, {}, 1);
    process.fit();
    EXPECT_GT(process.length(), length / 2) << length;
    EXPECT_LT(process.length(), length * 2) << length;
    const double reached = process.log_likelihood(process.length());
    for (double other = 0.01; other < 1000; other *= test::thorough(1.05, 1.6)) {
      EXPECT_GE(reached, process.log_likelihood(other) - 1e-2) << other;
    }
  }
}

TEST(GaussianProcess, EqualScoresAndPointsAreFine) {
  GaussianProcess process(2);
  for (int i = 0; i < 40; ++i) process.add(Point{0.25, i < 20 ? 0.25 : 0.5}, 0.1);
  process.fit();
  const Prediction prediction = process.predict(Point{0.9, 0.9});
  EXPECT_NEAR(prediction.mean, 0.1, 1e-12);
  EXPECT_TRUE(std::isfinite(prediction.deviation));
  GaussianProcess exact(1, {.noise = 1e-10});
  exact.set_length(1000);
  for (int i = 0; i < 50; ++i) exact.add(Point{0.5}, i % 2);
  EXPECT_NEAR(exact.predict(Point{0.5}).mean, 0.5, 1e-4);
}

TEST(GaussianProcess, ContinuesFromItsState) {
  const Data data = random_data(50, 3, 11);
  GaussianProcess process(3);
  for (size_t i = 0; i < 30; ++i) process.add(data.points[i], data.scores[i]);
  process.fit();
  for (size_t i = 30; i < 40; ++i) process.add(data.points[i], data.scores[i]);
  GaussianProcess restored(3, {}, process.state());
  for (size_t i = 40; i < 50; ++i) {
    process.add(data.points[i], data.scores[i]);
    restored.add(data.points[i], data.scores[i]);
  }
  EXPECT_EQ(restored.n_factored(), 30);
  for (const Point& point : random_data(20, 3, 12).points) {
    EXPECT_EQ(process.predict(point).mean, restored.predict(point).mean);
    EXPECT_EQ(process.predict(point).deviation, restored.predict(point).deviation);
  }
  process.fit();
  restored.fit();
  EXPECT_EQ(process.length(), restored.length());
}

TEST(GaussianProcess, RejectsWhatMakesNoSense) {
  EXPECT_THROW(GaussianProcess(2, {.noise = 0}), Error);
  EXPECT_THROW(GaussianProcess(2, {.min_length = 2, .max_length = 1}), Error);
  GaussianProcess process(1);
  EXPECT_THROW(process.add(Point{NAN}, 1), Error);
  EXPECT_THROW(process.add(Point{0.5}, INFINITY), Error);
  EXPECT_EQ(process.n_observations(), 0);
  GaussianProcessState state{.length = 1, .n_factored = 0, .points = {{0.5, 0.5}}, .scores = {1}};
  EXPECT_THROW(GaussianProcess(3, {}, state), Error);
  state.n_factored = 2;
  EXPECT_THROW(GaussianProcess(2, {}, state), Error);
}

}  // namespace
}  // namespace forerun
