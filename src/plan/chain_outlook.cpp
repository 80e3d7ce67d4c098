#include "plan/chain_outlook.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace forerun {
namespace {

constexpr std::array<double, kSurenessBins - 1> kBinEnds = {0.3, 0.6, 0.85, 0.95, 0.99};
constexpr size_t kFirstSureBin = 3;
// What is taken for true until something is known: as many tokens as this were seen.
constexpr ChainOutlook::Bins kFirstChances = {0.2, 0.45, 0.72, 0.88, 0.95, 0.98};
constexpr ChainOutlook::Bins kFirstShares = {0.1, 0.13, 0.15, 0.13, 0.17, 0.32};
constexpr double kFirstTokens = 3;
// How many tokens have to be seen to count as much as what is known otherwise.
constexpr double kTokensKnownOtherwise = 16;
// How fast what is known follows.
constexpr double kShareKept = 0.98;
constexpr double kSlowestChainRate = 0.01;

double logit(double chance) {
  const double clamped = std::clamp(chance, 1e-3, 1 - 1e-3);
  return std::log(clamped / (1 - clamped));
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

size_t bin_of(double probability) {
  return static_cast<size_t>(std::ranges::upper_bound(kBinEnds, probability) - kBinEnds.begin());
}
DraftedBehind behind_bin(size_t bin) {
  return bin >= kFirstSureBin ? DraftedBehind::kSureToken : DraftedBehind::kUnsureToken;
}

// How likely a model's token is right where one of a text is: text that is easy for one is so for both.
double both_right(double chance) {
  return (1 + chance) / 2;
}

// Of a level whose drafted token the text takes with this chance.
double value_of_level(double chance, double text, int n_text, double row) {
  if (n_text == 0) return std::max(0.0, chance - row);
  const double instead = chance - text - row * (1 - n_text);
  // What both say is one row.
  const double both = text * both_right(chance);
  const double besides = chance - both - row * (1 - both);
  return std::max({0.0, instead, besides});
}

// A function of the chance that the text comes to a token, between 0 and 1: its values at points, and
// straight lines between.
constexpr size_t kPoints = 9;
using ByChance = std::array<double, kPoints>;
struct PlaceAmongPoints {
  double chance;
  size_t below;
  double part;

  double of(const ByChance& values) const {
    return (1 - part) * values[below] + part * values[below + 1];
  }
};
PlaceAmongPoints place_of(double chance) {
  const double place = chance * (kPoints - 1);
  const size_t below = std::min(kPoints - 2, static_cast<size_t>(place));
  return {.chance = chance, .below = below, .part = place - static_cast<double>(below)};
}

}  // namespace

DraftedBehind behind_token(double probability) {
  return behind_bin(bin_of(probability));
}

ChainRecord::ChainRecord() : chances_(kFirstChances) {
  for (size_t bin = 0; bin < kSurenessBins; ++bin) {
    for (auto& counts : counts_) counts[bin] = kFirstTokens * kFirstShares[bin];
  }
}

double ChainRecord::known_otherwise(std::optional<double> agreement) const {
  if (!agreement) return 0;
  double right = 0, all = 0;
  for (const auto& counts : counts_) {
    right = std::inner_product(counts.begin(), counts.end(), chances_.begin(), right);
    all = std::accumulate(counts.begin(), counts.end(), all);
  }
  const double part = kTokensKnownOtherwise / (kTokensKnownOtherwise + n_seen());
  return part * (logit(*agreement) - logit(right / all));
}

ChainOutlook ChainRecord::outlook(double bias, std::optional<double> agreement) const {
  bias += known_otherwise(agreement);
  ChainOutlook outlook;
  for (size_t behind = 0; behind < kDraftedBehind; ++behind) {
    const auto& counts = counts_[behind];
    const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
    for (size_t bin = 0; bin < kSurenessBins; ++bin) outlook.shares[behind][bin] = counts[bin] / all;
  }
  for (size_t bin = 0; bin < kSurenessBins; ++bin) {
    outlook.chances[bin] = std::min(kMaxChance, sigmoid(logit(chances_[bin]) + bias));
  }
  return outlook;
}

void ChainRecord::observe(DraftedBehind behind, double probability, bool is_right) {
  const size_t bin = bin_of(probability);
  auto& counts = counts_[static_cast<size_t>(behind)];
  for (double& count : counts) count *= kShareKept;
  counts[bin] += 1;
  n_seen_[bin] = std::min(n_seen_[bin] + 1, kMostSeen);
  const double rate = std::max(kSlowestChainRate, 1 / (kFirstTokens + n_seen_[bin]));
  chances_[bin] += rate * ((is_right ? 1 : 0) - chances_[bin]);
}

double ChainRecord::n_seen() const {
  return std::accumulate(n_seen_.begin(), n_seen_.end(), 0.0);
}

void ChainRecord::add_to(std::vector<float>& numbers) const {
  for (const auto& counts : counts_) {
    for (const double count : counts) numbers.push_back(static_cast<float>(count));
  }
  for (const double value : chances_) numbers.push_back(static_cast<float>(value));
  for (const double n : n_seen_) numbers.push_back(static_cast<float>(n));
}

void ChainRecord::restore(std::span<const float> numbers) {
  CHECK(numbers.size() == kNumbers);
  auto next = numbers.begin();
  for (auto& counts : counts_) {
    for (double& count : counts) count = std::max(1e-3f, *next++);
  }
  for (double& chance : chances_) chance = std::clamp(*next++, 0.0f, 1.0f);
  for (double& n : n_seen_) n = std::max(0.0f, *next++);
}

std::array<double, kMostLevels> row_prices(const std::array<double, kMostLevels + 1>& costs) {
  std::array<double, kMostLevels> prices{};
  for (size_t corner = 0; corner < kMostLevels;) {
    size_t next = corner + 1;
    const auto slope_to = [&](size_t n) {
      return (costs[n] - costs[corner]) / static_cast<double>(n - corner);
    };
    for (size_t n = corner + 2; n <= kMostLevels; ++n) {
      if (slope_to(n) <= slope_to(next)) next = n;
    }
    const double slope = slope_to(next);
    for (; corner < next; ++corner) prices[corner] = slope;
  }
  return prices;
}

// By dynamic programming from the last level back, over how likely the text comes there. It is asked of
// every request of every pass: where chances lie among the points is the same on all levels, and what a
// token brings the same whatever it is drafted behind.
double value_of_drafting(const ChainOutlook& outlook, DraftedBehind behind, double reached,
                         const TextLevels& texts, const ChainPrices& prices, int n_most) {
  CHECK(n_most >= 1 && n_most <= kMostLevels);
  std::array<std::array<PlaceAmongPoints, kPoints>, kSurenessBins> places;
  for (size_t bin = 0; bin < kSurenessBins; ++bin) {
    for (size_t point = 0; point < kPoints; ++point) {
      const double reached_there = static_cast<double>(point) / (kPoints - 1);
      places[bin][point] = place_of(reached_there * outlook.chances[bin]);
    }
  }
  ByChance behind_unsure = {}, behind_sure = {};  // of going on behind the level
  const auto value_of_token = [&](size_t level, size_t bin, const PlaceAmongPoints& place) {
    const bool is_sure = behind_bin(bin) == DraftedBehind::kSureToken;
    return value_of_level(place.chance, texts.chance[level], texts.n_nodes[level], prices.rows[level]) +
           place.of(is_sure ? behind_sure : behind_unsure);
  };
  const ChainOutlook::Bins& of_unsure = outlook.shares_behind(DraftedBehind::kUnsureToken);
  const ChainOutlook::Bins& of_sure = outlook.shares_behind(DraftedBehind::kSureToken);
  for (size_t level = static_cast<size_t>(n_most) - 1; level > 0; --level) {
    ByChance unsure, sure;
    unsure.fill(-prices.token);
    sure.fill(-prices.token);
    for (size_t bin = 0; bin < kSurenessBins; ++bin) {
      for (size_t point = 0; point < kPoints; ++point) {
        const double value = value_of_token(level, bin, places[bin][point]);
        unsure[point] += of_unsure[bin] * value;
        sure[point] += of_sure[bin] * value;
      }
    }
    for (size_t point = 0; point < kPoints; ++point) {
      behind_unsure[point] = std::max(0.0, unsure[point]);
      behind_sure[point] = std::max(0.0, sure[point]);
    }
  }
  double sum = -prices.token;
  for (size_t bin = 0; bin < kSurenessBins; ++bin) {
    sum += outlook.shares_behind(behind)[bin] *
           value_of_token(0, bin, place_of(reached * outlook.chances[bin]));
  }
  return sum;
}

}  // namespace forerun
