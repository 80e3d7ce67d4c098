#include "optimise/neighbour_proposer.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/error.h"
#include "optimise/best_score.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// A change is as large as leaves it this chance to be for the better: then its score tells most.
constexpr double kEvenSwap = 0.5;
// Items are added for good when the chance that none is needed is this high.
constexpr double kSafeAddition = 0.9;
// A swap may gain as much as it loses, which says nothing of its items: so that it is not tried
// for ever, doubts that differ by less than this may change places.
constexpr double kSwapBlur = 0.5;
// No item is ever beyond doubt.
constexpr double kLeastDoubt = 0.03;
constexpr double kMostDoubt = 0.97;
// How much of what is known about the usual gain fades with each addition: it grows with the
// set.
constexpr double kGainFading = 0.05;

double normal_density(double x, double variance) {
  return std::exp(-0.5 * x * x / variance) / std::sqrt(variance);
}

// What a change of the best set flips.
struct Change {
  std::vector<size_t> added;
  std::vector<size_t> removed;
};

class NeighbourProposer final : public SubsetProposer {
 public:
  NeighbourProposer(int n_items, int n_skipped, const NeighbourOptions& options)
      : options_(options),
        n_skipped_(n_skipped),
        doubts_(static_cast<size_t>(n_items), options.needed_share),
        usual_gain_{.mean = 1.0 / n_items, .variance = square(1.0 / n_items)},
        best_score_(options.noise, options.retest_after) {}

  Subset propose(int n_before, const ScoredSubset* best, Random& random) override;
  std::optional<double> learn(const Subset& set, double score, const ScoredSubset* best) override;
  Json to_json() const override;
  void restore(const Json& json) override;

 private:
  Subset start(Random& random) const;
  // Items that are in the set or out of it, in the order in which they are to be flipped.
  std::vector<size_t> candidates(const Subset& set, bool is_in, Random& random) const;
  // As many of the least doubted as leave an even chance that none is needed; at least one.
  size_t n_to_add(std::span<const size_t> items) const;
  // As many of the most doubted as give an even chance that one is needed, but not so many that
  // the others outweigh it.
  size_t n_to_remove(std::span<const size_t> items) const;
  double chance_none_needed(std::span<const size_t> items) const;
  Change choose_change(const Subset& set, Random& random) const;
  // Learns from `loss`, how much lower the score is than it would usually be if none of these
  // skipped items were needed. The chance that none is, as known then.
  double learn_loss(std::span<const size_t> items, double loss, double variance);
  // Learns from the score of a changed set and of the best set, as shares of the latter. The new
  // best score, or nothing if the change is not for the better.
  std::optional<double> learn_change(const Change& change, double difference);

  NeighbourOptions options_;
  int n_skipped_;
  std::vector<double> doubts_;  // per item, the chance that it is needed
  Estimate usual_gain_;         // of skipping an item that is not needed
  BestScore best_score_;
};

Subset NeighbourProposer::start(Random& random) const {
  Subset set(doubts_.size());
  if (options_.may_resize) return set;
  for (const int item : random.choose(static_cast<int>(doubts_.size()), n_skipped_)) {
    set[static_cast<size_t>(item)] = true;
  }
  return set;
}

std::vector<size_t> NeighbourProposer::candidates(const Subset& set, bool is_in, Random& random) const {
  const double blur = options_.may_resize ? 1e-9 : kSwapBlur;
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t i = 0; i < set.size(); ++i) {
    const double doubt = is_in ? -doubts_[i] : doubts_[i];
    if (set[i] == is_in) ranked.emplace_back(doubt + blur * random.uniform(), i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<size_t> items;
  for (const auto& [rank, item] : ranked) items.push_back(item);
  return items;
}

double NeighbourProposer::chance_none_needed(std::span<const size_t> items) const {
  double chance = 1;
  for (const size_t item : items) chance *= 1 - doubts_[item];
  return chance;
}

size_t NeighbourProposer::n_to_add(std::span<const size_t> items) const {
  size_t n = std::min<size_t>(1, items.size());
  while (n < items.size() && chance_none_needed(items.first(n + 1)) >= kEvenSwap) ++n;
  return n;
}

size_t NeighbourProposer::n_to_remove(std::span<const size_t> items) const {
  const double usual = std::max(usual_gain_.mean, 1.0 / static_cast<double>(doubts_.size()));
  const double n_most = std::max(1.0, options_.effect / (2 * usual));
  size_t n = std::min<size_t>(1, items.size());
  while (n < items.size() && static_cast<double>(n + 1) <= n_most &&
         chance_none_needed(items.first(n)) > kEvenSwap) {
    ++n;
  }
  return n;
}

Change NeighbourProposer::choose_change(const Subset& set, Random& random) const {
  std::vector<size_t> out = candidates(set, false, random);
  std::vector<size_t> in = candidates(set, true, random);
  size_t n_added = n_to_add(out);
  size_t n_removed = n_to_remove(in);
  if (options_.may_resize) {
    const double add_chance = n_added == 0 ? 0 : chance_none_needed(std::span(out).first(n_added));
    const double remove_chance = 1 - chance_none_needed(std::span(in).first(n_removed));
    const bool adds = random.uniform() * (add_chance + remove_chance) < add_chance;
    (adds ? n_removed : n_added) = 0;
  } else {
    n_added = n_removed = std::min(n_added, n_removed);
  }
  out.resize(n_added);
  in.resize(n_removed);
  return {.added = std::move(out), .removed = std::move(in)};
}

Subset NeighbourProposer::propose(int /*n_before*/, const ScoredSubset* best, Random& random) {
  if (best == nullptr) return start(random);
  Subset set = best->set;
  if (best_score_.is_retest_due()) return set;
  const Change change = choose_change(set, random);
  for (const size_t item : change.added) set[item] = true;
  for (const size_t item : change.removed) set[item] = false;
  return set;
}

double NeighbourProposer::learn_loss(std::span<const size_t> items, double loss, double variance) {
  if (items.empty()) return 1;
  const double before = chance_none_needed(items);
  // Gains do not speak for a needed item, however large.
  const double at = std::max(0.0, loss);
  const double if_none = before * normal_density(at, variance);
  const double if_some =
      (1 - before) * normal_density(at - options_.effect, square(options_.effect) + variance);
  const double after = if_none / (if_none + if_some);
  for (const size_t item : items) {
    doubts_[item] = std::clamp((1 - after) * doubts_[item] / (1 - before), kLeastDoubt, kMostDoubt);
  }
  return after;
}

std::optional<double> NeighbourProposer::learn_change(const Change& change, double difference) {
  const double variance = best_score_.noise_variance() + best_score_.variance();
  const auto n_added = static_cast<double>(change.added.size());
  const auto n_removed = static_cast<double>(change.removed.size());
  const double per_item = std::max(0.0, usual_gain_.mean);
  const double none_added = learn_loss(change.added, -difference, variance);
  const double usual = (n_added - n_removed) * per_item;
  const double none_removed = learn_loss(change.removed, difference - std::min(0.0, usual), variance);
  const bool is_usual = none_added > kEvenSwap && none_removed > kEvenSwap;
  if (is_usual && n_added != n_removed) {
    usual_gain_.variance *= 1 + kGainFading;
    usual_gain_.observe(difference / (n_added - n_removed), variance / square(n_added - n_removed));
  }
  if (none_added < kSafeAddition) return std::nullopt;

  // What it gains: what such a change usually gains, and what the score says.
  Estimate gain{.mean = difference, .variance = variance};
  if (is_usual) {
    const double spread = std::max(per_item, 1 / static_cast<double>(doubts_.size()));
    gain = {.mean = (n_added - n_removed) * per_item,
            .variance = (n_added + n_removed) * square(spread)};
    gain.observe(difference, variance);
  }
  if (!(gain.mean > 0)) return std::nullopt;
  // A needed item may have slipped in: then the new score says more than the old one.
  Estimate best{
      .mean = gain.mean,
      .variance = best_score_.variance() + gain.variance + (1 - none_added) * square(options_.effect)};
  best.observe(difference, best_score_.noise_variance());
  best_score_.replaced(best.variance);
  return best.mean;
}

std::optional<double> NeighbourProposer::learn(const Subset& set, double score,
                                               const ScoredSubset* best) {
  if (best == nullptr) {
    best_score_.begin();
    return score;
  }
  const RelativeScore relative(score, best->score);
  if (set == best->set) return relative.higher_by(best_score_.retested(relative.difference()));
  Change change;
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i] != best->set[i]) (set[i] ? change.added : change.removed).push_back(i);
  }
  const std::optional<double> gain = learn_change(change, relative.difference());
  if (!gain) best_score_.failed();
  return gain ? std::optional(relative.higher_by(*gain)) : std::nullopt;
}

Json NeighbourProposer::to_json() const {
  return {
      {"doubts", doubts_}, {"usual_gain", usual_gain_.to_json()}, {"best_score", best_score_.to_json()}};
}

void NeighbourProposer::restore(const Json& json) {
  auto doubts = json.at("doubts").get<std::vector<double>>();
  bool makes_sense = doubts.size() == doubts_.size() && usual_gain_.restore(json.at("usual_gain")) &&
                     best_score_.restore(json.at("best_score"));
  for (const double doubt : doubts) makes_sense &= doubt >= kLeastDoubt && doubt <= kMostDoubt;
  if (!makes_sense) fail(ErrorCode::kInvalidFile, "numbers are out of range");
  doubts_ = std::move(doubts);
}

}  // namespace

std::unique_ptr<SubsetProposer> make_neighbour_proposer(int n_items, int n_skipped,
                                                        const NeighbourOptions& options) {
  return std::make_unique<NeighbourProposer>(n_items, n_skipped, options);
}

}  // namespace forerun
