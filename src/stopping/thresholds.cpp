#include "stopping/thresholds.h"

#include <algorithm>
#include <functional>

namespace forerun {
namespace {

// Draft & Verify's numbers.
constexpr double kWantedShare = 0.9;
constexpr double kStep = 0.01;
// How much of what was is kept.
constexpr double kKeptShare = 0.5;
constexpr double kKeptThreshold = 0.9;

// Hugging Face's.
constexpr size_t kEnoughSeen = 5;
constexpr double kMissedWeight = 3;

}  // namespace

void AdaptiveThreshold::observe(const ChainOutcome& outcome) {
  if (outcome.n_drafted == 0) return;
  const double share = static_cast<double>(outcome.n_agreed) / outcome.n_drafted;
  accepted_ = kKeptShare * accepted_ + (1 - kKeptShare) * share;
  double wanted = value_;
  if (accepted_ < kWantedShare) {
    wanted += kStep;
  } else if (!outcome.is_longest) {
    wanted -= kStep;
  }
  value_ = std::clamp(kKeptThreshold * value_ + (1 - kKeptThreshold) * wanted, 0.0, 1.0);
}

void RocThreshold::observe(const ChainOutcome& outcome) {
  for (int i = 0; i < outcome.n_tested; ++i) {
    if (seen_.size() == kKept) seen_.erase(seen_.begin());
    seen_.push_back(
        {.probability = outcome.probabilities[static_cast<size_t>(i)], .agreed = i < outcome.n_agreed});
  }
  const auto n_good = std::ranges::count(seen_, true, &Seen::agreed);
  const auto n_bad = static_cast<ptrdiff_t>(seen_.size()) - n_good;
  if (seen_.size() <= kEnoughSeen || n_good == 0 || n_bad == 0) return;
  std::vector<Seen> sorted = seen_;
  std::ranges::sort(sorted, std::ranges::greater(), &Seen::probability);
  // Going on at the threshold of each probability, from the highest on: what is drafted in vain
  // against what is not drafted.
  double best = kMissedWeight;
  ptrdiff_t n_vain = 0, n_drafted = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    (sorted[i].agreed ? n_drafted : n_vain) += 1;
    const bool is_last = i + 1 == sorted.size();
    if (!is_last && sorted[i + 1].probability == sorted[i].probability) continue;
    const double cost =
        static_cast<double>(n_vain) / static_cast<double>(n_bad) +
        kMissedWeight * static_cast<double>(n_good - n_drafted) / static_cast<double>(n_good);
    if (cost >= best) continue;
    best = cost;
    value_ = sorted[i].probability;
  }
}

}  // namespace forerun
