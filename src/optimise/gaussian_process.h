// Gaussian-process regression of a function on the unit cube.
//
// A Matern kernel of smoothness 5/2 with one length scale for all dimensions, and white
// noise on the observations (Rasmussen and Williams: "Gaussian Processes for Machine
// Learning", 2006, algorithm 2.1 and section 5.4.1). Scores are shifted and scaled to mean 0
// and variance 1 inside, as scikit-learn's `normalize_y` does, so that noise and prior are
// relative to them; what comes out is in their units.
//
// Costs, for N observations in n dimensions: a fit is O(N^2 n) and some 30 Cholesky
// factorisations of N^3/3 products; an observation with an unchanged length scale adds a row
// to the factor in O(N^2 + N n); a prediction is O(N^2 + N n). Memory: 8 N^2 bytes, three
// times that during a fit. Made for n up to about 600 and N up to about 1,000.
//
// Where a fit differs from scikit-learn's: length scales are looked for in [0.01, 1000] rather
// than [1e-5, 1e5], outside of which the kernel of points in the unit cube is the identity or
// constant anyway; and restarts are the local maxima of a scan rather than random, since
// there is one parameter only.
//
// A header of this folder: Eigen shows, for predictions of many points at once. Users of
// subset_search.h do not see it. Const calls are safe from many threads.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

namespace forerun {

struct GaussianProcessOptions {
  // Variance of the noise, for scores of variance 1. At least 1e-10.
  double noise = 1e-2;
  double min_length = 1e-2;
  double max_length = 1e3;
  // Length scales of a scan, evenly spaced by their logarithms. At least 2.
  int n_scanned = 11;
  // Local searches from the scan's best local maxima, and the evaluations of each.
  int n_starts = 2;
  int max_evaluations = 12;
};

struct Prediction {
  double mean = 0;
  double deviation = 0;
};

// What makes a process again, to the bit (see GaussianProcess::state).
struct GaussianProcessState {
  double length = 1;
  int n_factored = 0;                       // observations when the length was set
  std::vector<std::vector<double>> points;  // in the order in which they came
  std::vector<double> scores;
};

class GaussianProcess {
 public:
  // Throws Error for options that make no sense.
  explicit GaussianProcess(int n_dimensions, const GaussianProcessOptions& options = {});
  // A process that goes on exactly as the one that was saved. Throws Error for a state that
  // is not of this many dimensions or has numbers that no process has.
  GaussianProcess(int n_dimensions, const GaussianProcessOptions& options,
                  const GaussianProcessState& state);

  int n_dimensions() const { return static_cast<int>(points_.rows()); }
  int n_observations() const { return n_; }
  double length() const { return length_; }
  // How many observations there were when the length was fitted or set.
  int n_factored() const { return n_factored_; }
  GaussianProcessState state() const;
  // The point with the highest score, the first of several. There is an observation.
  std::vector<double> best_point() const;

  // Throws Error for a score or a point that is not finite, and for points so close that the
  // noise does not tell them apart numerically.
  void add(std::span<const double> point, double score);

  // Chooses the length scale with the highest marginal likelihood. Without two observations
  // there is nothing to choose.
  void fit();
  void set_length(double length);
  // Of the normalised scores; minus infinity where it cannot be computed.
  double log_likelihood(double length) const;

  // Of the function, without noise. Before any observation: 0 and 1.
  Prediction predict(std::span<const double> point) const;
  // A column of `points` is a point.
  std::vector<Prediction> predict(const Eigen::Ref<const Eigen::MatrixXd>& points) const;
  // Also the gradients, one number per dimension each.
  Prediction predict(std::span<const double> point, std::span<double> mean_gradient,
                     std::span<double> deviation_gradient) const;

 private:
  void append(std::span<const double> point, double score);
  void normalise();
  // Makes the factor for all observations, or adds a row for the newest.
  void factor();
  void extend_factor();
  double log_likelihood(const Eigen::MatrixXd& squared_distances, double length) const;
  auto observed() const { return points_.leftCols(n_); }

  GaussianProcessOptions options_;
  int n_ = 0;
  int n_factored_ = 0;
  double length_ = 1;
  // The first n_ columns, numbers, or rows and columns are in use: room doubles as needed.
  Eigen::MatrixXd points_;  // [n_dimensions, room]
  Eigen::VectorXd scores_;  // [room]
  Eigen::MatrixXd factor_;  // [room, room]; lower Cholesky factor of kernel plus noise
  // Scores are score_mean_ + score_scale_ * normalised_.
  double score_mean_ = 0;
  double score_scale_ = 1;
  Eigen::VectorXd normalised_;  // [n_]
  Eigen::VectorXd weights_;     // [n_]; (kernel plus noise)^-1 normalised_
};

}  // namespace forerun
