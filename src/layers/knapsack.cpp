#include "layers/knapsack.h"

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace forerun {
namespace {

// What a cosine lost costs, in shares of the weight.
constexpr std::array<double, 4> kPrices = {2, 8, 32, 128};

double trade(const KnapsackChoice& choice, double price) {
  return choice.skipped_share - price * (1 - choice.cosine);
}

struct Branch : KnapsackChoice {
  std::span<const float> states = {};
  bool is_kept = true;
};

class Solver {
 public:
  Solver(BlockStates& states, const KnapsackOptions& options)
      : states_(states), options_(options), n_layers_(states.n_layers()) {}

  std::vector<KnapsackChoice> solve() {
    const KnapsackChoice full{.layers = LayerSet::full(n_layers_)};
    const int first = options_.whole_layers ? 0 : 2;
    const int n_together = options_.whole_layers ? 2 : 1;
    const int end_of_free = options_.whole_layers ? 2 * n_layers_ : 2 * (n_layers_ - 1);
    if (first >= end_of_free) return {full};
    live_.push_back({full, states_.full(first)});
    for (int block = first; block < 2 * n_layers_; block += n_together) {
      pass(block, n_together, block < end_of_free);
    }
    const std::vector<double> agreement = states_.agreement(live_states());
    for (size_t i = 0; i < live_.size(); ++i) live_[i].agreement = agreement[i];
    return {live_.begin(), live_.end()};
  }

 private:
  std::vector<float> live_states() const {
    std::vector<float> states;
    for (const Branch& branch : live_) {
      states.insert(states.end(), branch.states.begin(), branch.states.end());
    }
    return states;
  }

  // From before `block` to behind it and those that go with it.
  void pass(int block, int n_together, bool may_skip) {
    before_ = live_states();
    behind_ = before_;
    // The full model's states behind the blocks are known; those of the others are computed.
    const auto reference = states_.full(block + n_together);
    std::ranges::copy(reference, behind_.begin());
    for (int i = 0; i < n_together; ++i) {
      states_.run(BlockId{block + i}, std::span(behind_).subspan(reference.size()));
    }
    const int weight = block % 2 == 0 ? options_.attention_weight : options_.mlp_weight;
    const int total = n_layers_ * (options_.attention_weight + options_.mlp_weight);
    std::vector<Branch> next;
    const auto add = [&](Branch branch, std::span<const float> states) {
      branch.states = states;
      if (branch.skipped_weight > 0) branch.cosine = mean_cosine(states, reference, states_.n_embd());
      if (branch.cosine >= options_.min_cosine) next.push_back(branch);
    };
    for (size_t i = 0; i < live_.size(); ++i) {
      const size_t at = i * reference.size();
      Branch branch = live_[i];
      add(branch, std::span(behind_).subspan(at, reference.size()));
      branch.skipped_weight += weight;
      if (!may_skip || branch.skipped_weight > options_.max_weight) continue;
      branch.skipped_share = static_cast<double>(branch.skipped_weight) / total;
      for (int b = block; b < block + n_together; ++b) branch.layers.set(BlockId{b}, false);
      add(branch, std::span(before_).subspan(at, reference.size()));
    }
    // Of each weight the likest; of equals the one that runs, and in CLaSp's programme the other.
    std::ranges::sort(next, {}, [&](const Branch& branch) {
      const bool runs = branch.layers.runs(BlockId{block});
      return std::tuple(branch.skipped_weight, -branch.cosine, runs == options_.whole_layers);
    });
    const auto weighs_the_same = [](const Branch& one, const Branch& other) {
      return one.skipped_weight == other.skipped_weight;
    };
    next.erase(std::unique(next.begin(), next.end(), weighs_the_same), next.end());
    live_ = std::move(next);
    thin_out();
  }

  // Keeps the full model, and the best trades at each price, which choose in turn.
  void thin_out() {
    const auto max = static_cast<size_t>(options_.max_branches);
    if (live_.size() <= max) return;
    std::vector<Branch*> chosen(live_.size() * kPrices.size());
    for (size_t p = 0; p < kPrices.size(); ++p) {
      std::vector<Branch*> order;
      for (Branch& branch : live_) order.push_back(&branch);
      const auto value = [&](const Branch* branch) { return trade(*branch, kPrices[p]); };
      std::ranges::stable_sort(order, std::greater<>(), value);
      for (size_t rank = 0; rank < order.size(); ++rank) chosen[rank * kPrices.size() + p] = order[rank];
    }
    for (Branch& branch : live_) branch.is_kept = branch.skipped_weight == 0;
    for (size_t n_kept = 1; Branch * branch : chosen) {
      if (n_kept == max) break;
      if (!std::exchange(branch->is_kept, true)) ++n_kept;
    }
    std::erase_if(live_, [](const Branch& branch) { return !branch.is_kept; });
  }

  BlockStates& states_;
  const KnapsackOptions& options_;
  int n_layers_;
  std::vector<Branch> live_;            // by rising weight; the first is the full model
  std::vector<float> before_, behind_;  // the last blocks: there the states of branches lie
};

}  // namespace

std::vector<KnapsackChoice> solve_knapsack(BlockStates& states, const KnapsackOptions& options) {
  CHECK(options.attention_weight > 0 && options.mlp_weight > 0 && options.max_branches > 0);
  return Solver(states, options).solve();
}

std::vector<KnapsackChoice> best_trades(const std::vector<KnapsackChoice>& choices) {
  std::vector<KnapsackChoice> best;
  for (const double price : kPrices) {
    const auto value = [&](const KnapsackChoice& choice) { return trade(choice, price); };
    const auto found = std::ranges::max_element(choices, {}, value);
    const bool is_known = !best.empty() && best.back().skipped_weight == found->skipped_weight;
    if (found->skipped_weight > 0 && !is_known) best.push_back(*found);
  }
  return best;
}

}  // namespace forerun
