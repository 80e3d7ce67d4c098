// For tests: items of which some may be skipped at hardly any cost, and a score that knows.
//
// The score is the speedup of speculative decoding with a drafter that skips the items: each
// skipped item costs agreement, a factor per item that is near 1 for the planted ones, and
// saves its share of a draft's time. The best number of drafted tokens is taken, at least 1: so
// sets that do not pay score below 1, the worse the lower.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "optimise/random.h"
#include "optimise/subset_search.h"

namespace forerun {

class PlantedSubset {
 public:
  PlantedSubset(int n_items, int n_planted, uint64_t seed) : planted_(static_cast<size_t>(n_items)) {
    Random random(seed);
    for (const int item : random.choose(n_items, n_planted)) planted_[static_cast<size_t>(item)] = true;
    for (const bool is_planted : planted_) {
      const double loss = is_planted ? 0.0004 * random.uniform() : 0.01 + 0.39 * random.uniform();
      kept_agreement_.push_back(1 - loss);
    }
  }

  const Subset& planted() const { return planted_; }

  double agreement(const Subset& set) const {
    double agreement = 1;
    for (size_t i = 0; i < set.size(); ++i) agreement *= set[i] ? kept_agreement_[i] : 1;
    return agreement;
  }

  double speedup(const Subset& set) const {
    const double cost = 1 - n_skipped(set) / static_cast<double>(set.size());
    const double agreed = agreement(set);
    double best = 0;
    double n_tokens = 1;
    double chance = 1;
    for (int length = 1; length <= 12; ++length) {
      chance *= agreed;
      n_tokens += chance;
      best = std::max(best, n_tokens / (1 + length * cost));
    }
    return best;
  }

  // With noise of this relative size.
  double noisy(double score, double noise, std::mt19937_64& random) const {
    return score * (1 + noise * std::normal_distribution<double>()(random));
  }

 private:
  Subset planted_;
  std::vector<double> kept_agreement_;
};

// How many items are as in `hidden`, smoothly.
inline double likeness(const Subset& set, const Subset& hidden) {
  double n = 0;
  for (size_t i = 0; i < set.size(); ++i) n += set[i] == hidden[i] ? 1 : 0;
  return std::pow(n / static_cast<double>(set.size()), 2);
}

// Bayesian steps small enough for tests.
inline SubsetSearchOptions small(SubsetStrategy strategy) {
  SubsetSearchOptions options = strategy == SubsetStrategy::kSwift    ? SubsetSearchOptions::swift()
                                : strategy == SubsetStrategy::kSelfSd ? SubsetSearchOptions::self_sd()
                                                                      : SubsetSearchOptions();
  options.strategy = strategy;
  options.good_score = 1e9;
  options.bayesian.n_probes = 100;
  options.bayesian.n_random_starts = 1;
  options.bayesian.max_evaluations = 20;
  return options;
}

}  // namespace forerun
