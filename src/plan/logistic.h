// Chances as sums of weights: what the models of acceptance have in common.
#pragma once

#include <algorithm>
#include <cmath>

namespace forerun {

// Nothing is certain: without this a lucky streak would draft to the limit.
inline constexpr double kMaxChance = 0.985;
inline constexpr double kMostSeen = 1e6;

inline double logit(double chance) {
  const double clamped = std::clamp(chance, 1e-3, 1 - 1e-3);
  return std::log(clamped / (1 - clamped));
}
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace forerun
