#include "optimise/kmeans.h"

#include <forerun/error.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace forerun {
namespace {

double inertia_of(const PointRows& points, const std::vector<int>& assignment, int n_clusters) {
  const auto n = static_cast<size_t>(points.n_dimensions);
  std::vector<double> sums(static_cast<size_t>(n_clusters) * n);
  std::vector<double> sizes(static_cast<size_t>(n_clusters));
  for (size_t i = 0; i < assignment.size(); ++i) {
    const auto cluster = static_cast<size_t>(assignment[i]);
    ++sizes[cluster];
    for (size_t d = 0; d < n; ++d)
      sums[cluster * n + d] += static_cast<double>(points.values[i * n + d]);
  }
  double inertia = 0;
  for (size_t i = 0; i < assignment.size(); ++i) {
    const auto cluster = static_cast<size_t>(assignment[i]);
    for (size_t d = 0; d < n; ++d) {
      const double mean = sums[cluster * n + d] / sizes[cluster];
      inertia += std::pow(static_cast<double>(points.values[i * n + d]) - mean, 2);
    }
  }
  return inertia;
}

// Over all assignments of the points to clusters.
double least_inertia(const PointRows& points, int n_clusters) {
  double least = 1e300;
  std::vector<int> assignment(static_cast<size_t>(points.n_points()));
  while (true) {
    least = std::min(least, inertia_of(points, assignment, n_clusters));
    size_t i = 0;
    while (i < assignment.size() && ++assignment[i] == n_clusters) assignment[i++] = 0;
    if (i == assignment.size()) return least;
  }
}

std::vector<float> random_values(size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& x : values) x = normal(random);
  return values;
}

TEST(KMeans, FindsTheBestAssignmentOfFewPoints) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<float> values = random_values(16, seed);
    const PointRows points{values, 2};
    for (const int k : {1, 2, 3}) {
      const Clusters clusters = k_means(points, {.n_clusters = k, .n_restarts = 20});
      EXPECT_NEAR(clusters.inertia, least_inertia(points, k), 1e-9) << seed << ' ' << k;
      EXPECT_NEAR(clusters.inertia, inertia_of(points, clusters.assignment, k), 1e-9);
    }
  }
}

TEST(KMeans, FindsPlantedClusters) {
  constexpr int kClusters = 7;
  constexpr int kDimensions = 30;
  const std::vector<float> centres = random_values(kClusters * kDimensions, 1);
  std::vector<float> values = random_values(350 * kDimensions, 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.1f * values[i] + centres[i / kDimensions % kClusters * kDimensions + i % kDimensions];
  }
  const Clusters clusters = k_means({values, kDimensions}, {.n_clusters = kClusters});
  ASSERT_EQ(clusters.n_clusters, kClusters);
  std::set<int> used;
  for (size_t i = 0; i < kClusters; ++i) used.insert(clusters.assignment[i]);
  EXPECT_EQ(used.size(), kClusters);
  for (size_t i = 0; i < 350; ++i) EXPECT_EQ(clusters.assignment[i], clusters.assignment[i % kClusters]);
  const auto first = static_cast<size_t>(clusters.assignment[0]);
  for (size_t d = 0; d < kDimensions; ++d) {
    EXPECT_NEAR(clusters.centroids[first * kDimensions + d], centres[d], 0.1f);
  }
}

TEST(KMeans, CopiesOfPointsMakeNoClusters) {
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) {
    values.push_back(static_cast<float>(i % 3));
    values.push_back(1);
  }
  const Clusters clusters = k_means({values, 2}, {.n_clusters = 5});
  EXPECT_EQ(clusters.n_clusters, 3);
  EXPECT_EQ(clusters.inertia, 0);
  EXPECT_EQ(clusters.centroids.size(), 6);
  for (size_t i = 3; i < 20; ++i) EXPECT_EQ(clusters.assignment[i], clusters.assignment[i % 3]);
}

TEST(KMeans, FewerPointsThanClusters) {
  const std::vector<float> values = {1, 2, 3, 4};
  const Clusters clusters = k_means({values, 2}, {.n_clusters = 10});
  EXPECT_EQ(clusters.n_clusters, 2);
  EXPECT_NE(clusters.assignment[0], clusters.assignment[1]);
  EXPECT_EQ(clusters.inertia, 0);
}

// Points of very different sizes: now and then a cluster loses all its points on the way.
TEST(KMeans, NoClusterIsEmpty) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::vector<float> values = random_values(6, seed);
    for (float& x : values) x = std::copysign(std::exp(2 * std::abs(x)), x);
    const Clusters clusters = k_means({values, 1}, {.n_clusters = 3, .n_restarts = 1, .seed = seed});
    const std::set<int> used(clusters.assignment.begin(), clusters.assignment.end());
    ASSERT_EQ(clusters.n_clusters, 3);
    ASSERT_EQ(used.size(), 3) << seed;
    for (const float x : clusters.centroids) ASSERT_TRUE(std::isfinite(x)) << seed;
  }
}

TEST(KMeans, IsDeterministicAndRestartsHelp) {
  const std::vector<float> values = random_values(600, 3);
  const PointRows points{values, 3};
  const KMeansOptions options{.n_clusters = 12};
  EXPECT_EQ(k_means(points, options).assignment, k_means(points, options).assignment);
  EXPECT_LT(k_means(points, options).inertia,
            k_means(points, {.n_clusters = 12, .n_restarts = 1}).inertia);
}

TEST(KMeans, RejectsWhatMakesNoSense) {
  const std::vector<float> bad = {1, NAN};
  EXPECT_THROW(k_means({bad, 1}, {}), Error);
  EXPECT_THROW(k_means({{}, 3}, {}), Error);
  const std::vector<float> good = {1, 2};
  EXPECT_THROW(k_means({good, 1}, {.n_clusters = 0}), Error);
}

TEST(NearestByCosine, ComparesDirectionsOnly) {
  const std::vector<float> values = {0, 0, 1, 0, 100, 100, -3, 0};
  const PointRows points{values, 2};
  const auto nearest = nearest_by_cosine(points, std::vector<float>{0.001f, 0.0009f});
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->index, 2);
  EXPECT_NEAR(nearest->cosine, 1.9 / std::sqrt(2 * 1.81), 1e-6);
  EXPECT_EQ(nearest_by_cosine(points, std::vector<float>{-1, 0})->index, 3);
  EXPECT_NEAR(nearest_by_cosine(points, std::vector<float>{5, 0})->cosine, 1, 1e-12);
}

TEST(NearestByCosine, ZeroVectorsHaveNoDirection) {
  const std::vector<float> zeros = {0, 0, 0, 0};
  EXPECT_FALSE(nearest_by_cosine({zeros, 2}, std::vector<float>{1, 0}));
  const std::vector<float> values = {0, 0, -1, 0};
  EXPECT_FALSE(nearest_by_cosine({values, 2}, std::vector<float>{0, 0}));
  EXPECT_EQ(nearest_by_cosine({values, 2}, std::vector<float>{1, 0})->index, 1);
  EXPECT_FALSE(nearest_by_cosine({{}, 2}, std::vector<float>{1, 0}));
}

}  // namespace
}  // namespace forerun
