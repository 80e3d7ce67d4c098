#include "tune/disco/evaluation.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace forerun {

DiscoScore score_disco(const DiscoNetwork& network, std::span<const DiscoExample> examples,
                       double threshold) {
  double n_said = 0, n_taken = 0, n_both = 0;
  for (const DiscoExample& example : examples) {
    const auto taken = static_cast<double>(example.taken);
    n_taken += taken;
    if (network.chance(example.features) < threshold) continue;
    n_said += 1;
    n_both += taken;
  }
  const auto share = [](double part, double of) { return of > 0 ? part / of : 0; };
  return {.precision = share(n_both, n_said),
          .recall = share(n_both, n_taken),
          .f1 = share(2 * n_both, n_said + n_taken)};
}

DiscoCalibration calibration_of(const DiscoNetwork& network, std::span<const DiscoExample> examples) {
  CHECK(!examples.empty());
  DiscoCalibration calibration{};
  for (const DiscoExample& example : examples) {
    const double chance = network.chance(example.features);
    const auto taken = static_cast<double>(example.taken);
    auto& bins = calibration.bins;
    const auto place = static_cast<size_t>(chance * static_cast<double>(bins.size()));
    CalibrationBin& bin = bins[std::min(place, bins.size() - 1)];
    bin.n_tokens += 1;
    bin.said += chance;
    bin.taken += taken;
    calibration.brier += (chance - taken) * (chance - taken);
  }
  const auto n = static_cast<double>(examples.size());
  calibration.brier /= n;
  for (CalibrationBin& bin : calibration.bins) {
    if (bin.n_tokens == 0) continue;
    calibration.error += std::abs(bin.said - bin.taken) / n;
    bin.said /= static_cast<double>(bin.n_tokens);
    bin.taken /= static_cast<double>(bin.n_tokens);
  }
  return calibration;
}

}  // namespace forerun
