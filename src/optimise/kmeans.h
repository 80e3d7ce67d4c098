// Clusters of points, and the point nearest to another by direction.
//
// K-means by Lloyd's algorithm ("Least squares quantization in PCM", 1982), started by
// k-means++ (Arthur and Vassilvitskii, SODA 2007), the best of several starts. Points are
// floats, as hidden states are; sums are doubles. Deterministic for a seed.
//
// Costs, for N points in n dimensions: k N n multiplications an iteration, and 8 N n bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace forerun {

// Points as the rows of a matrix, one after another.
struct PointRows {
  std::span<const float> values;
  int n_dimensions = 0;

  int n_points() const { return static_cast<int>(values.size()) / n_dimensions; }
};

struct KMeansOptions {
  int n_clusters = 10;
  int n_restarts = 10;
  int max_iterations = 300;  // of one start
  uint64_t seed = 42;
};

struct Clusters {
  std::vector<float> centroids;  // rows: the mean of each cluster's points
  int n_clusters = 0;
  std::vector<int> assignment;  // per point
  double inertia = 0;           // sum of squared distances from the centroids

  PointRows rows(int n_dimensions) const { return {centroids, n_dimensions}; }
};

// No cluster is empty, so there are no more of them than different points. Throws Error for
// no points, numbers that are not finite, and options that make no sense.
Clusters k_means(const PointRows& points, const KMeansOptions& options);

struct NearestPoint {
  int index = 0;
  double cosine = 0;  // of the angle between the two
};

// The point with the smallest angle to `query`, the first of several. Zero vectors have no
// direction: there is none nearest to one, and none is nearest to another.
std::optional<NearestPoint> nearest_by_cosine(const PointRows& points, std::span<const float> query);

}  // namespace forerun
