#include "optimise/kmeans.h"

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "core/check.h"
#include "core/error.h"
#include "optimise/random.h"

namespace forerun {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const FloatRows> as_matrix(const PointRows& points) {
  CHECK(points.n_dimensions > 0);
  CHECK(points.values.size() % static_cast<size_t>(points.n_dimensions) == 0);
  return {points.values.data(), points.n_points(), points.n_dimensions};
}

// A column is a point, here and below.
VectorXd squared_distances(const MatrixXd& points, const VectorXd& from) {
  return (points.colwise() - from).colwise().squaredNorm().transpose();
}

// The first point whose share of the sum reaches beyond `target`; never one without a share.
Index draw(const VectorXd& shares, double target) {
  Index last = 0;
  for (Index i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    last = i;
    target -= shares[i];
    if (target < 0) break;
  }
  return last;
}

// Points that lie apart: each with a chance in proportion to its squared distance from those
// before it. Fewer than asked for if there are not as many different points.
MatrixXd plus_plus_seeds(const MatrixXd& points, int n_clusters, Random& random) {
  MatrixXd seeds(points.rows(), n_clusters);
  seeds.col(0) = points.col(random.below(static_cast<int>(points.cols())));
  VectorXd nearest = squared_distances(points, seeds.col(0));
  for (Index k = 1; k < n_clusters; ++k) {
    const double sum = nearest.sum();
    if (!(sum > 0)) return seeds.leftCols(k);
    seeds.col(k) = points.col(draw(nearest, random.uniform() * sum));
    nearest = nearest.cwiseMin(squared_distances(points, seeds.col(k)));
  }
  return seeds;
}

class Lloyd {
 public:
  Lloyd(const MatrixXd& points, MatrixXd seeds)
      : points_(points),
        centroids_(std::move(seeds)),
        assignment_(static_cast<size_t>(points.cols()), -1),
        distances_(points.cols()) {}

  void run(int max_iterations) {
    for (int i = 0; i < max_iterations && assign(); ++i) move_centroids();
  }
  // Of the centroids as they are: the means of their points.
  double inertia() const {
    double sum = 0;
    for (Index i = 0; i < points_.cols(); ++i) {
      sum += (points_.col(i) - centroids_.col(cluster_of(i))).squaredNorm();
    }
    return sum;
  }
  const MatrixXd& centroids() const { return centroids_; }
  const std::vector<int>& assignment() const { return assignment_; }

 private:
  Index cluster_of(Index point) const { return assignment_[static_cast<size_t>(point)]; }

  // Each point to the centroid nearest to it; whether anything changed.
  bool assign() {
    // |x - c|^2 without the |x|^2 that is the same for all centroids.
    MatrixXd relative = -2.0 * (centroids_.transpose() * points_);  // [clusters, points]
    relative.colwise() += centroids_.colwise().squaredNorm().transpose();
    bool changed = false;
    for (Index i = 0; i < points_.cols(); ++i) {
      Index nearest = 0;
      relative.col(i).minCoeff(&nearest);
      changed |= cluster_of(i) != nearest;
      assignment_[static_cast<size_t>(i)] = static_cast<int>(nearest);
    }
    return fill_empty_clusters() || changed;
  }

  // An empty cluster takes the point that lies farthest from its centroid.
  bool fill_empty_clusters() {
    std::vector<int> sizes(static_cast<size_t>(centroids_.cols()));
    for (const int cluster : assignment_) ++sizes[static_cast<size_t>(cluster)];
    if (std::find(sizes.begin(), sizes.end(), 0) == sizes.end()) return false;
    for (Index i = 0; i < points_.cols(); ++i) {
      distances_[i] = (points_.col(i) - centroids_.col(cluster_of(i))).squaredNorm();
    }
    for (size_t empty = 0; empty < sizes.size(); ++empty) {
      if (sizes[empty] > 0) continue;
      Index farthest = -1;
      for (Index i = 0; i < points_.cols(); ++i) {
        const bool may_leave = sizes[static_cast<size_t>(cluster_of(i))] > 1;
        if (may_leave && (farthest < 0 || distances_[i] > distances_[farthest])) farthest = i;
      }
      CHECK(farthest >= 0);  // there are at least as many points as clusters
      --sizes[static_cast<size_t>(cluster_of(farthest))];
      ++sizes[empty];
      assignment_[static_cast<size_t>(farthest)] = static_cast<int>(empty);
      distances_[farthest] = 0;
    }
    return true;
  }

  void move_centroids() {
    centroids_.setZero();
    VectorXd sizes = VectorXd::Zero(centroids_.cols());
    for (Index i = 0; i < points_.cols(); ++i) {
      centroids_.col(cluster_of(i)) += points_.col(i);
      sizes[cluster_of(i)] += 1;
    }
    centroids_.array().rowwise() /= sizes.transpose().array();
  }

  const MatrixXd& points_;
  MatrixXd centroids_;
  std::vector<int> assignment_;
  VectorXd distances_;
};

}  // namespace

Clusters k_means(const PointRows& rows, const KMeansOptions& options) {
  const MatrixXd points = as_matrix(rows).cast<double>().transpose();
  if (points.cols() == 0) fail(ErrorCode::kInvalidArgument, "K-means: there are no points");
  if (!points.allFinite())
    fail(ErrorCode::kInvalidArgument, "K-means: a point is not of finite numbers");
  if (options.n_clusters < 1 || options.n_restarts < 1 || options.max_iterations < 1) {
    fail(ErrorCode::kInvalidArgument, "K-means: clusters, restarts and iterations must be 1 or more");
  }
  const int n_clusters = std::min(options.n_clusters, rows.n_points());
  Clusters best;
  best.inertia = std::numeric_limits<double>::infinity();
  for (int restart = 0; restart < options.n_restarts; ++restart) {
    Random random(options.seed, static_cast<uint64_t>(restart));
    Lloyd lloyd(points, plus_plus_seeds(points, n_clusters, random));
    lloyd.run(options.max_iterations);
    const double inertia = lloyd.inertia();
    if (!(inertia < best.inertia)) continue;
    const Eigen::MatrixXf centroids = lloyd.centroids().cast<float>();
    best = {.centroids = {centroids.data(), centroids.data() + centroids.size()},
            .n_clusters = static_cast<int>(centroids.cols()),
            .assignment = lloyd.assignment(),
            .inertia = inertia};
  }
  return best;
}

std::optional<NearestPoint> nearest_by_cosine(const PointRows& points, std::span<const float> query) {
  CHECK(query.size() == static_cast<size_t>(points.n_dimensions));
  const auto matrix = as_matrix(points);
  const VectorXd direction =
      Eigen::Map<const Eigen::VectorXf>(query.data(), points.n_dimensions).cast<double>();
  const double norm = direction.norm();
  if (!(norm > 0)) return std::nullopt;
  std::optional<NearestPoint> nearest;
  for (Index i = 0; i < matrix.rows(); ++i) {
    const VectorXd point = matrix.row(i).cast<double>().transpose();
    const double point_norm = point.norm();
    if (!(point_norm > 0)) continue;
    const double cosine = std::clamp(direction.dot(point) / (norm * point_norm), -1.0, 1.0);
    if (!nearest || cosine > nearest->cosine) nearest = {.index = static_cast<int>(i), .cosine = cosine};
  }
  return nearest;
}

}  // namespace forerun
