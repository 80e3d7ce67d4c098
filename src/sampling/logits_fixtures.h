// Rows of logits of which the best are known, as a GPU leaves them, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "sampling/logits_view.h"

namespace forerun::test {

class RowWithBest final : public WholeLogits {
 public:
  explicit RowWithBest(std::vector<float> logits) : logits_(std::move(logits)) {
    SelectionScratch scratch;
    select_top(logits_, kBestLogits, scratch, best_);
    if (!best_.empty()) sums_ = softmax_sums(logits_);
  }
  RowWithBest(const RowWithBest&) = delete;
  RowWithBest& operator=(const RowWithBest&) = delete;

  std::span<const float> row(size_t /*place*/) override {
    ++n_asked_;
    return logits_;
  }
  LogitsView view() { return {{.tokens = best_, .sums = sums_}, logits_.size(), *this, 0}; }
  const std::vector<float>& logits() const { return logits_; }
  // How often all logits were asked for.
  int n_asked() const { return n_asked_; }

 private:
  std::vector<float> logits_;
  std::vector<ScoredToken> best_;
  SoftmaxSums sums_;
  int n_asked_ = 0;
};

// What rows may look like.
enum class Odd { kNothing, kTies, kInfinities, kNothingLeft };

inline std::vector<float> odd_logits(std::mt19937& random, size_t n, Odd odd) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kOdd[] = {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), kMax, -kMax,
                            0.0f, -0.0f};
  std::normal_distribution<float> normal(0, static_cast<float>(1 + random() % 4));
  const float step = random() % 2 == 0 ? 1 : 8;
  std::vector<float> logits(n);
  for (float& logit : logits) {
    logit = normal(random);
    if (odd == Odd::kTies) logit = step * std::round(logit / step);
    if (odd == Odd::kInfinities && random() % 8 == 0) logit = kOdd[random() % std::size(kOdd)];
    if (odd == Odd::kNothingLeft && random() % (n / 40 + 2) != 0) logit = kOdd[1 + random() % 2];
  }
  return logits;
}

}  // namespace forerun::test
