// What a search that changes the best set knows of that set's score, and of the noise of scores.
//
// Both as shares of the best score. The best set is scored again after changes and when nothing
// succeeds: that is how the noise is known, and how lucky scores do not block the way.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace forerun {

inline double square(double x) {
  return x * x;
}

// A number that is known with this uncertainty.
struct Estimate {
  double mean = 0;
  double variance = 0;

  void observe(double value, double value_variance) {
    const double share = variance / (variance + value_variance);
    mean += share * (value - mean);
    variance *= 1 - share;
  }

  nlohmann::ordered_json to_json() const { return {mean, variance}; }
  // False: numbers that make no sense.
  bool restore(const nlohmann::ordered_json& json) {
    mean = json.at(0).get<double>();
    variance = json.at(1).get<double>();
    return std::isfinite(mean) && is_variance(variance);
  }
  static bool is_variance(double x) { return x >= 0 && std::isfinite(x); }
};

// A score beside the best one: by what share of that it is higher.
class RelativeScore {
 public:
  RelativeScore(double score, double best)
      : best_(best),
        scale_(std::abs(best) > 1e-9 ? std::abs(best) : 1),
        difference_((score - best) / scale_) {}

  double difference() const { return difference_; }
  // The score that is higher than the best one by this share.
  double higher_by(double share) const { return best_ + share * scale_; }

 private:
  double best_;
  double scale_;
  double difference_;
};

class BestScore {
 public:
  // The noise of the first score, and after how many failures the set is scored again (0: never).
  BestScore(double first_noise, int retest_after)
      : first_noise_(first_noise), retest_after_(retest_after) {}

  // There is a first score.
  void begin() { variance_ = square(first_noise_); }

  double variance() const { return variance_; }
  double noise_variance() const {
    const double seen = n_tests_ > 0 ? noise_sum_ / n_tests_ : 0;
    return std::max(square(kLeastNoise), seen);
  }

  bool is_retest_due() const {
    if (retest_after_ == 0) return false;
    const bool is_noisy = noise_variance() > square(kLeastNoise);
    const bool is_vague = is_noisy && variance_ > kKnownWell * noise_variance();
    return n_tests_ < kFirstTests - 1 || is_vague || n_failed_ >= retest_after_;
  }

  // The best set scored again, higher by `difference`. How much higher it is taken to be.
  double retested(double difference) {
    const double noise = noise_variance();
    noise_sum_ += square(difference) * noise / (noise + variance_);
    ++n_tests_;
    n_failed_ = 0;
    Estimate best{.mean = 0, .variance = variance_};
    best.observe(difference, noise_variance());
    variance_ = std::max(best.variance, kKnownBest * noise_variance());
    return best.mean;
  }

  // A change did not become the best set.
  void failed() { ++n_failed_; }
  // A change became the best set; its score is known this well.
  void replaced(double variance) {
    variance_ = variance;
    n_failed_ = 0;
  }

  nlohmann::ordered_json to_json() const {
    return {{"variance", variance_},
            {"noise_sum", noise_sum_},
            {"n_tests", n_tests_},
            {"n_failed", n_failed_}};
  }
  // False: numbers that make no sense.
  bool restore(const nlohmann::ordered_json& json) {
    variance_ = json.at("variance").get<double>();
    noise_sum_ = json.at("noise_sum").get<double>();
    n_tests_ = json.at("n_tests").get<int>();
    n_failed_ = json.at("n_failed").get<int>();
    return Estimate::is_variance(variance_) && Estimate::is_variance(noise_sum_) && n_tests_ >= 0 &&
           n_failed_ >= 0;
  }

 private:
  // The first set is scored this often before the first change, to know the noise.
  static constexpr int kFirstTests = 4;
  // The best set is scored again until its score is known to this share of the noise's variance.
  // It is never taken to be known better than to the other: effects are not quite additive.
  static constexpr double kKnownWell = 0.5;
  static constexpr double kKnownBest = 1.0 / 6;
  // Differences below this are rounding.
  static constexpr double kLeastNoise = 1e-4;

  double first_noise_;
  int retest_after_;
  double variance_ = 0;   // of what is known of the best set's score
  double noise_sum_ = 0;  // squared deviations of scores of the same set, and their number
  int n_tests_ = 0;
  int n_failed_ = 0;  // since the last success or retest
};

}  // namespace forerun
