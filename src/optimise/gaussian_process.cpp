#include "optimise/gaussian_process.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/check.h"
#include "core/error.h"
#include "optimise/local_maximum.h"

namespace forerun {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using ConstPoints = Eigen::Ref<const MatrixXd>;

// Points are predicted in blocks of this many, which stay in the cache.
constexpr Index kBlock = 256;
// Below this the deviation is rounding, and has no gradient.
constexpr double kSmallestVariance = 1e-14;

Eigen::Map<const VectorXd> as_vector(std::span<const double> numbers) {
  return {numbers.data(), static_cast<Index>(numbers.size())};
}

// [a.cols(), b.cols()]; a column of each is a point.
MatrixXd squared_distances(const ConstPoints& a, const ConstPoints& b) {
  MatrixXd distances = -2.0 * (a.transpose() * b);
  distances.colwise() += a.colwise().squaredNorm().transpose();
  distances.rowwise() += b.colwise().squaredNorm();
  return distances.cwiseMax(0.0);
}

// Matern 5/2: (1 + s + s^2 / 3) exp(-s) with s = sqrt(5) distance / length.
MatrixXd kernel(const ConstPoints& squared_distances, double length) {
  const Eigen::ArrayXXd s = (squared_distances.array() * (5 / (length * length))).sqrt();
  return ((1 + s + s.square() / 3) * (-s).exp()).matrix();
}

void check_options(int n_dimensions, const GaussianProcessOptions& options) {
  CHECK(n_dimensions > 0);
  const bool makes_sense = options.noise >= 1e-10 && std::isfinite(options.noise) &&
                           options.min_length > 0 && options.max_length > options.min_length &&
                           std::isfinite(options.max_length) && options.n_scanned >= 2 &&
                           options.n_starts >= 0 && options.max_evaluations >= 1;
  if (!makes_sense) {
    fail(ErrorCode::kInvalidArgument,
         "Gaussian process: noise must be at least 1e-10, lengths positive and ascending, "
         "with 2 or more to scan");
  }
}

}  // namespace

GaussianProcess::GaussianProcess(int n_dimensions, const GaussianProcessOptions& options)
    : options_(options), points_(n_dimensions, 0) {
  check_options(n_dimensions, options);
  length_ = std::clamp(1.0, options.min_length, options.max_length);
}

GaussianProcess::GaussianProcess(int n_dimensions, const GaussianProcessOptions& options,
                                 const GaussianProcessState& state)
    : GaussianProcess(n_dimensions, options) {
  const size_t n = state.points.size();
  bool makes_sense = state.scores.size() == n && state.n_factored >= 0 &&
                     static_cast<size_t>(state.n_factored) <= n && state.length > 0 &&
                     std::isfinite(state.length);
  for (const auto& point : state.points) {
    makes_sense &= point.size() == static_cast<size_t>(n_dimensions);
  }
  if (!makes_sense) fail(ErrorCode::kInvalidFile, "the saved state is not of this search's process");
  const auto n_factored = static_cast<size_t>(state.n_factored);
  for (size_t i = 0; i < n_factored; ++i) append(state.points[i], state.scores[i]);
  set_length(state.length);
  for (size_t i = n_factored; i < n; ++i) add(state.points[i], state.scores[i]);
}

GaussianProcessState GaussianProcess::state() const {
  GaussianProcessState state{.length = length_, .n_factored = n_factored_, .points = {}, .scores = {}};
  for (Index i = 0; i < n_; ++i) {
    state.points.emplace_back(points_.col(i).begin(), points_.col(i).end());
    state.scores.push_back(scores_[i]);
  }
  return state;
}

std::vector<double> GaussianProcess::best_point() const {
  CHECK(n_ > 0);
  Index best = 0;
  scores_.head(n_).maxCoeff(&best);
  return {points_.col(best).begin(), points_.col(best).end()};
}

void GaussianProcess::append(std::span<const double> point, double score) {
  CHECK(point.size() == static_cast<size_t>(n_dimensions()));
  if (!std::isfinite(score) || !as_vector(point).allFinite()) {
    fail(ErrorCode::kInvalidArgument, "Gaussian process: an observation is not a finite number");
  }
  if (n_ == points_.cols()) {
    const Index room = std::max<Index>(16, 2 * n_);
    points_.conservativeResize(Eigen::NoChange, room);
    scores_.conservativeResize(room);
    factor_.conservativeResize(room, room);
  }
  points_.col(n_) = as_vector(point);
  scores_[n_] = score;
  ++n_;
}

void GaussianProcess::add(std::span<const double> point, double score) {
  append(point, score);
  try {
    extend_factor();
  } catch (...) {
    --n_;
    throw;
  }
  normalise();
}

void GaussianProcess::normalise() {
  if (n_ == 0) return;
  const auto scores = scores_.head(n_);
  score_mean_ = scores.mean();
  const double deviation = std::sqrt((scores.array() - score_mean_).square().mean());
  // Equal scores differ from their mean by rounding at most.
  const double rounding = 1e-12 * std::max(1e-200, scores.cwiseAbs().maxCoeff());
  score_scale_ = deviation > rounding ? deviation : 1;
  normalised_ = (scores.array() - score_mean_) / score_scale_;
  const auto lower = factor_.topLeftCorner(n_, n_).triangularView<Eigen::Lower>();
  weights_ = lower.solve(normalised_);
  lower.transpose().solveInPlace(weights_);
}

void GaussianProcess::extend_factor() {
  const Index n_before = n_ - 1;
  const VectorXd covariances =
      kernel(squared_distances(points_.leftCols(n_before), points_.col(n_before)), length_);
  const VectorXd row =
      factor_.topLeftCorner(n_before, n_before).triangularView<Eigen::Lower>().solve(covariances);
  const double rest = 1 + options_.noise - row.squaredNorm();
  if (!(rest > options_.noise / 2)) return factor();  // rounding: all at once is more exact
  factor_.row(n_before).head(n_before) = row.transpose();
  factor_(n_before, n_before) = std::sqrt(rest);
}

void GaussianProcess::factor() {
  MatrixXd covariances = kernel(squared_distances(observed(), observed()), length_);
  covariances.diagonal().setConstant(1 + options_.noise);
  const Eigen::LLT<Eigen::Ref<MatrixXd>> in_place(covariances);
  if (in_place.info() != Eigen::Success) {
    fail(ErrorCode::kInvalidArgument,
         "Gaussian process: observations are too close for a noise of {}: raise it", options_.noise);
  }
  factor_.topLeftCorner(n_, n_) = covariances;
}

void GaussianProcess::set_length(double length) {
  CHECK(length > 0 && std::isfinite(length));
  length_ = length;
  n_factored_ = n_;
  if (n_ == 0) return;
  factor();
  normalise();
}

double GaussianProcess::log_likelihood(const MatrixXd& squared_distances, double length) const {
  MatrixXd covariances = kernel(squared_distances, length);
  covariances.diagonal().setConstant(1 + options_.noise);
  const Eigen::LLT<Eigen::Ref<MatrixXd>> in_place(covariances);
  if (in_place.info() != Eigen::Success) return -std::numeric_limits<double>::infinity();
  const double half_log_determinant = covariances.diagonal().array().log().sum();
  const double misfit = in_place.matrixL().solve(normalised_).squaredNorm();
  return -0.5 * misfit - half_log_determinant - 0.5 * n_ * std::log(2 * std::numbers::pi);
}

double GaussianProcess::log_likelihood(double length) const {
  if (n_ == 0) return 0;
  return log_likelihood(squared_distances(observed(), observed()), length);
}

void GaussianProcess::fit() {
  if (n_ < 2) return set_length(length_);
  const MatrixXd distances = squared_distances(observed(), observed());
  const auto likelihood = [&](std::span<const double> log_length, std::span<double>) {
    return log_likelihood(distances, std::exp(log_length[0]));
  };
  const double lowest = std::log(options_.min_length);
  const double highest = std::log(options_.max_length);
  const double spacing = (highest - lowest) / (options_.n_scanned - 1);

  Maximum best{.point = {std::log(length_)}, .value = log_likelihood(distances, length_)};
  std::vector<Maximum> scan;
  for (int i = 0; i < options_.n_scanned; ++i) {
    const double at = lowest + i * spacing;
    scan.push_back({.point = {at}, .value = likelihood({&at, 1}, {})});
  }
  std::vector<Maximum> starts = {best};
  for (size_t i = 0; i < scan.size(); ++i) {
    const bool above_left = i == 0 || scan[i].value > scan[i - 1].value;
    const bool above_right = i + 1 == scan.size() || scan[i].value >= scan[i + 1].value;
    if (above_left && above_right) starts.push_back(scan[i]);
  }
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Maximum& a, const Maximum& b) { return a.value > b.value; });
  starts.resize(std::min(starts.size(), static_cast<size_t>(options_.n_starts)));
  for (const Maximum& start : starts) {
    if (start.value > best.value) best = start;
    if (!std::isfinite(start.value)) continue;
    const LocalSearch search{.method = LocalMethod::kDerivativeFree,
                             .lower = lowest,
                             .upper = highest,
                             .first_step = spacing / 2,
                             .max_evaluations = options_.max_evaluations,
                             .tolerance = 1e-3};
    const double inside = std::clamp(start.point[0], lowest, highest);
    Maximum found = local_maximum(search, likelihood, {&inside, 1});
    if (found.value > best.value) best = std::move(found);
  }
  set_length(std::exp(best.point[0]));
}

Prediction GaussianProcess::predict(std::span<const double> point) const {
  return predict(point, {}, {});
}

std::vector<Prediction> GaussianProcess::predict(const Eigen::Ref<const MatrixXd>& points) const {
  CHECK(points.rows() == points_.rows());
  std::vector<Prediction> predictions(static_cast<size_t>(points.cols()),
                                      {.mean = score_mean_, .deviation = score_scale_});
  if (n_ == 0) return predictions;
  for (Index begin = 0; begin < points.cols(); begin += kBlock) {
    const Index n = std::min(kBlock, points.cols() - begin);
    MatrixXd block = kernel(squared_distances(observed(), points.middleCols(begin, n)), length_);
    const VectorXd means = block.transpose() * weights_;
    factor_.topLeftCorner(n_, n_).triangularView<Eigen::Lower>().solveInPlace(block);
    const VectorXd variances = 1 - block.colwise().squaredNorm().transpose().array();
    for (Index i = 0; i < n; ++i) {
      predictions[static_cast<size_t>(begin + i)] = {
          .mean = score_mean_ + score_scale_ * means[i],
          .deviation = score_scale_ * std::sqrt(std::max(0.0, variances[i]))};
    }
  }
  return predictions;
}

Prediction GaussianProcess::predict(std::span<const double> point, std::span<double> mean_gradient,
                                    std::span<double> deviation_gradient) const {
  CHECK(point.size() == static_cast<size_t>(n_dimensions()));
  CHECK(mean_gradient.size() == deviation_gradient.size());
  std::fill(mean_gradient.begin(), mean_gradient.end(), 0.0);
  std::fill(deviation_gradient.begin(), deviation_gradient.end(), 0.0);
  if (n_ == 0) return {.mean = score_mean_, .deviation = score_scale_};
  const auto x = as_vector(point);
  const VectorXd distances = squared_distances(observed(), x);
  const VectorXd covariances = kernel(distances, length_);
  const auto lower = factor_.topLeftCorner(n_, n_).triangularView<Eigen::Lower>();
  VectorXd solved = lower.solve(covariances);
  const double variance = std::max(0.0, 1 - solved.squaredNorm());
  const Prediction prediction{.mean = score_mean_ + score_scale_ * covariances.dot(weights_),
                              .deviation = score_scale_ * std::sqrt(variance)};
  if (mean_gradient.empty()) return prediction;

  // The kernel's gradient at x is slope_i (x - x_i) for observation i.
  CHECK(mean_gradient.size() == point.size());
  const Eigen::ArrayXd s = (distances.array() * 5).sqrt() / length_;
  const VectorXd slopes = (1 + s) * (-s).exp() * (-5 / (3 * length_ * length_));
  lower.transpose().solveInPlace(solved);  // (kernel plus noise)^-1 covariances
  const auto weighted = [&](const VectorXd& weights) -> VectorXd {
    const VectorXd products = weights.cwiseProduct(slopes);
    return x * products.sum() - observed() * products;
  };
  Eigen::Map<VectorXd>(mean_gradient.data(), x.size()) = score_scale_ * weighted(weights_);
  if (variance > kSmallestVariance) {
    Eigen::Map<VectorXd>(deviation_gradient.data(), x.size()) =
        -score_scale_ / std::sqrt(variance) * weighted(solved);
  }
  return prediction;
}

}  // namespace forerun
