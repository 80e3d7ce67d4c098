// The loops of sampling that read a whole vocabulary: up to 262,144 logits per token.
//
// One pass each, vectorised, exact: the results depend neither on the instruction set
// nor on the machine. A NaN logit counts as -infinity. Thread-safe.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"

namespace forerun {

struct ScoredToken {
  float logit;
  TokenId token;

  // Ordered by falling logit, then by rising token: no two tokens tie.
  bool operator<(const ScoredToken& other) const {
    return logit > other.logit || (logit == other.logit && token < other.token);
  }
};

// Buffers of the selections, kept between calls so that none is allocated twice.
struct SelectionScratch {
  std::vector<float> block_max;
  std::vector<float> ranked;
  std::vector<double> mass;
  std::vector<ScoredToken> edge;
};

// The token with the largest logit, of equal ones the first; none if all are
// -infinity or NaN.
std::optional<TokenId> argmax(std::span<const float> logits);

// The largest logit; -infinity if there is none.
float largest(std::span<const float> logits);

// Whether any logit is -infinity or NaN: a token that can never be chosen.
bool has_excluded(std::span<const float> logits);

// NaN as -infinity, +infinity as the largest finite number.
inline float clean(float logit) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float without_nan = logit >= -kMax ? logit : -std::numeric_limits<float>::infinity();
  return without_nan < kMax ? without_nan : kMax;
}

// The logits of the first n tokens; of those that are not there -infinity. They lie in `memory`
// where there are fewer than n.
std::span<const float> fit_logits(std::span<const float> logits, size_t n, std::vector<float>& memory);

// Copies clean(logit) of each.
void copy_clean(std::span<const float> logits, std::vector<float>& out);

// Makes `out` the k best tokens in the order of ScoredToken (fewer if fewer have a
// logit above -infinity). Expects a k of at least 1.
void select_top(std::span<const float> logits, size_t k, SelectionScratch& scratch,
                std::vector<ScoredToken>& out);

// Makes `out` every token with a logit of at least `threshold` and above -infinity,
// by rising token.
void select_at_least(std::span<const float> logits, float threshold, std::vector<ScoredToken>& out);

// A share of the probability: `max` is the largest logit and finite, `total` the
// sum_exp of what the share refers to, at temperature 1.
struct MassTarget {
  float share;
  float max;
  double total;

  bool is_reached(double sum) const { return static_cast<float>(sum / total) >= share; }
};

// Makes `out` the shortest beginning of the tokens in the order of ScoredToken whose
// sum of exp(logit - max) reaches the target; in any order.
void select_mass(std::span<const float> logits, const MassTarget& target, SelectionScratch& scratch,
                 std::vector<ScoredToken>& out);

// Sum of exp((x - max) / temperature) over all logits x; `max` is the largest and finite.
double sum_exp(std::span<const float> logits, float max, float temperature);

// Of the distribution at temperature 1, in one pass. Some logit is above -infinity.
struct SoftmaxSums {
  float max = 0;       // the largest logit
  double total = 0;    // sum_exp(logits, max, 1)
  double entropy = 0;  // nats

  double probability(float logit) const;
};
SoftmaxSums softmax_sums(std::span<const float> logits);

// The probability of a token at temperature 1.
double probability_of(TokenId token, std::span<const float> logits);

// out[i] = log-softmax of logits / temperature, given the same `max`.
void log_softmax(std::span<const float> logits, float max, float temperature, std::span<float> out);

}  // namespace forerun
