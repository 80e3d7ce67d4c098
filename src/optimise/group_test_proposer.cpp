#include "optimise/group_test_proposer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optimise/best_score.h"
#include "optimise/need_posterior.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Additions are as many as leave this chance that none is needed: a little more than even, where a
// test tells most, since those that succeed also lead on.
constexpr double kHopefulChance = 0.65;
constexpr double kEvenChance = 0.5;
// Items are added for good when the chance that none is needed is this high.
constexpr double kSafeChance = 0.85;
// Losses below this do not show that an item is needed, even without noise.
constexpr double kSmallLoss = 1e-3;
// Removals that gain so many times what noise brings are for the better, whoever was needed.
constexpr double kClearGain = 2;
// Best sets that are known to be worse than skipping nothing by so many times the noise are given up.
constexpr double kClearLoss = 1;
// How much of what is known about the usual gain fades with each addition: it grows with the set.
constexpr double kFading = 0.05;

double log_density(double x, double variance) {
  return -0.5 * (x * x / variance + std::log(variance));
}

class GroupTestProposer final : public SubsetProposer {
 public:
  GroupTestProposer(int n_items, const NeighbourOptions& options)
      : options_(options),
        n_items_(n_items),
        needs_(n_items, options.needed_share),
        usual_gain_{.mean = 0.5 / n_items, .variance = square(1.0 / n_items)},
        best_score_(options.noise, options.retest_after) {}

  Subset propose(int n_before, const ScoredSubset* best, Random& random) override;
  std::optional<double> learn(const Subset& set, double score, const ScoredSubset* best) override;
  Json to_json() const override;
  void restore(const Json& json) override;

 private:
  // What a change flips: all in or all out.
  struct Change {
    std::vector<int> items;
    bool adds = false;
  };
  // Items in the set or out of it, in the order in which they are to be flipped.
  std::vector<int> candidates(const Subset& set, bool is_in, Random& random) const;
  Change choose_change(const Subset& set, Random& random) const;
  // Learns from the score of a changed set, higher by this share than the best set's. The share by
  // which the new best set is taken to score higher, or nothing if the best set stays.
  std::optional<double> learn_change(const Change& change, double difference);
  // Of skipping items none of which is needed.
  double gain_of(size_t n_items) const { return static_cast<double>(n_items) * usual_gain(); }
  double usual_gain() const { return std::max(0.0, usual_gain_.mean); }

  NeighbourOptions options_;
  int n_items_;
  NeedPosterior needs_;
  Estimate usual_gain_;  // of skipping an item that is not needed
  BestScore best_score_;
  double empty_score_ = 0;  // of skipping nothing
};

std::vector<int> GroupTestProposer::candidates(const Subset& set, bool is_in, Random& random) const {
  std::vector<std::pair<double, int>> ranked;
  for (int i = 0; i < n_items_; ++i) {
    const double doubt = needs_.doubt(i) + 1e-9 * random.uniform();
    if (set[static_cast<size_t>(i)] == is_in) ranked.emplace_back(is_in ? -doubt : doubt, i);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<int> items;
  for (const auto& [rank, item] : ranked) items.push_back(item);
  return items;
}

GroupTestProposer::Change GroupTestProposer::choose_change(const Subset& set, Random& random) const {
  std::vector<int> out = candidates(set, false, random);
  std::vector<int> in = candidates(set, true, random);
  const std::vector<double> none_of_out = needs_.none_needed_of_first(out);
  const std::vector<double> none_of_in = needs_.none_needed_of_first(in);
  size_t n_added = std::min<size_t>(1, out.size());
  while (n_added < out.size() && none_of_out[n_added + 1] >= kHopefulChance) ++n_added;
  // What the others gained must not outweigh one that is needed.
  const double n_most = options_.effect / (2 * std::max(usual_gain(), 1.0 / n_items_));
  size_t n_removed = std::min<size_t>(1, in.size());
  while (n_removed < in.size() && static_cast<double>(n_removed + 1) <= n_most &&
         none_of_in[n_removed] > kEvenChance) {
    ++n_removed;
  }
  const double add_chance = n_added == 0 ? 0 : none_of_out[n_added];
  const double remove_chance = n_removed == 0 ? 0 : 1 - none_of_in[n_removed];
  const bool adds =
      n_removed == 0 || (n_added > 0 && random.uniform() * (add_chance + remove_chance) <= add_chance);
  Change change{.items = adds ? std::move(out) : std::move(in), .adds = adds};
  change.items.resize(adds ? n_added : n_removed);
  return change;
}

Subset GroupTestProposer::propose(int /*n_before*/, const ScoredSubset* best, Random& random) {
  if (best == nullptr) return Subset(static_cast<size_t>(n_items_));
  Subset set = best->set;
  if (best_score_.is_retest_due()) return set;
  const double noise = std::sqrt(best_score_.noise_variance() + best_score_.variance());
  if (n_skipped(set) > 0 && best->score < (1 - kClearLoss * noise) * empty_score_) {
    return Subset(static_cast<size_t>(n_items_));
  }
  const Change change = choose_change(set, random);
  for (const int item : change.items) set[static_cast<size_t>(item)] = change.adds;
  return set;
}

std::optional<double> GroupTestProposer::learn_change(const Change& change, double difference) {
  const double noise = best_score_.noise_variance();
  const double variance = noise + best_score_.variance() + square(kSmallLoss);
  const double gain = gain_of(change.items.size());
  // What a needed item would explain. Gains do not speak for one, however large.
  const double cost = std::max(0.0, change.adds ? -difference : difference + gain);
  const double evidence = log_density(cost - options_.effect, square(options_.effect) + variance) -
                          log_density(cost, variance);
  needs_.learn(change.items, evidence);
  const double none_needed = needs_.none_needed(change.items);

  if (!change.adds) {
    const bool is_clear = difference > kClearGain * std::sqrt(variance);
    if (!(difference > 0) || (none_needed > kEvenChance && !is_clear)) return std::nullopt;
    best_score_.replaced(noise);
    return difference;
  }
  const auto n = static_cast<double>(change.items.size());
  // Small losses are no gain of such items: noise, or one that is needed a little.
  if (none_needed > kEvenChance && difference > 0) {
    usual_gain_.variance *= 1 + kFading;
    usual_gain_.observe(difference / n, variance / square(n));
  }
  // What it gains: what such a change usually does, and what the score says.
  const double spread = std::max(usual_gain(), 0.5 / n_items_);
  Estimate expected{.mean = gain, .variance = n * square(spread)};
  expected.observe(difference, noise + best_score_.variance());
  if (none_needed < kSafeChance || !(expected.mean > 0)) return std::nullopt;
  Estimate best{.mean = gain, .variance = best_score_.variance() + n * square(spread)};
  best.observe(difference, noise);
  best_score_.replaced(best.variance);
  return best.mean;
}

std::optional<double> GroupTestProposer::learn(const Subset& set, double score,
                                               const ScoredSubset* best) {
  if (best == nullptr) {
    best_score_.begin();
    return score;
  }
  if (n_skipped(best->set) == 0) empty_score_ = best->score;
  const RelativeScore relative(score, best->score);
  if (set == best->set) return relative.higher_by(best_score_.retested(relative.difference()));
  Change added{.items = {}, .adds = true};
  Change removed{.items = {}, .adds = false};
  for (int i = 0; i < n_items_; ++i) {
    const auto item = static_cast<size_t>(i);
    if (set[item] != best->set[item]) (set[item] ? added : removed).items.push_back(i);
  }
  if (!added.items.empty() && !removed.items.empty()) {
    // A set that was given: it tests nothing in particular.
    if (!(relative.difference() > 0)) return std::nullopt;
    best_score_.replaced(best_score_.noise_variance());
    return score;
  }
  const std::optional<double> gain =
      learn_change(added.items.empty() ? removed : added, relative.difference());
  if (!gain) best_score_.failed();
  return gain ? std::optional(relative.higher_by(*gain)) : std::nullopt;
}

Json GroupTestProposer::to_json() const {
  return {{"needs", needs_.to_json()},
          {"usual_gain", usual_gain_.to_json()},
          {"empty_score", empty_score_},
          {"best_score", best_score_.to_json()}};
}

void GroupTestProposer::restore(const Json& json) {
  empty_score_ = json.at("empty_score").get<double>();
  if (!std::isfinite(empty_score_) || !usual_gain_.restore(json.at("usual_gain")) ||
      !best_score_.restore(json.at("best_score"))) {
    fail(ErrorCode::kInvalidFile, "numbers are out of range");
  }
  needs_.restore(json.at("needs"));
}

}  // namespace

std::unique_ptr<SubsetProposer> make_group_test_proposer(int n_items, const NeighbourOptions& options) {
  return std::make_unique<GroupTestProposer>(n_items, options);
}

}  // namespace forerun
