// How far one computation's numbers are from another's that rounds differently.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <span>

#include "core/check.h"
#include "model/model.h"

namespace forerun::test {

inline double largest_magnitude(std::span<const float> values) {
  double result = 0;
  for (const float value : values) result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

// Differences as shares of the reference's largest number; infinite where one is NaN.
struct Distance {
  double worst = 0;
  double mean = 0;

  bool within(const Distance& bound) const { return worst <= bound.worst && mean <= bound.mean; }
};

inline std::ostream& operator<<(std::ostream& out, const Distance& distance) {
  return out << "worst " << distance.worst << " mean " << distance.mean;
}

inline Distance distance(std::span<const float> values, std::span<const float> reference) {
  CHECK(values.size() == reference.size() && !values.empty());
  Distance result;
  for (size_t i = 0; i < values.size(); ++i) {
    double difference = std::abs(static_cast<double>(values[i]) - static_cast<double>(reference[i]));
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    result.worst = std::max(result.worst, difference);
    result.mean += difference;
  }
  const double scale = largest_magnitude(reference);
  return {.worst = result.worst / scale,
          .mean = result.mean / static_cast<double>(values.size()) / scale};
}

// What rounding explains between the logits of two engines, of a model with random
// weights. With float weights F16's 5e-4 comes in a few times per layer. With quantised
// ones a last bit tips an activation to the next of 255 steps, which random weights pass
// on undamped.
inline Distance logit_bound(const Model& model) {
  const bool quantised =
      ggml_is_quantized(model.parts()[0].weights.layers[0].attention.out.weight->type);
  return quantised ? Distance{.worst = 0.1, .mean = 0.015} : Distance{.worst = 0.02, .mean = 0.002};
}

// Whether the rows of logits that two engines made of the same text are what rounding explains. Where
// two of a mixture's experts are about as good, it may choose the other one, and that row is another,
// and by less all that see it. What is computed wrongly is so in all rows: a quarter of them must be
// near.
inline ::testing::AssertionResult are_near(const Model& model, std::span<const float> logits,
                                           std::span<const float> reference) {
  const Distance bound = logit_bound(model), found = distance(logits, reference);
  if (found.within(bound)) return ::testing::AssertionSuccess();
  size_t n_far = 0;
  const auto n_vocab = static_cast<size_t>(model.config().n_vocab);
  for (size_t at = 0; at < logits.size(); at += n_vocab) {
    n_far += distance(logits.subspan(at, n_vocab), reference.subspan(at, n_vocab)).within(bound) ? 0 : 1;
  }
  const size_t n_rows = logits.size() / n_vocab;
  if (model.config().experts.n_all > 0 && 4 * n_far <= 3 * n_rows) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << found << ", " << n_far << " of " << n_rows << " rows";
}

}  // namespace forerun::test
