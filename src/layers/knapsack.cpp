#include "layers/knapsack.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/check.h"

namespace forerun {
namespace {

// What a cosine lost costs, in shares of the weight.
constexpr std::array<double, 4> kPrices = {2, 8, 32, 128};

double trade(int weight, double cosine, int total, double price) {
  return static_cast<double>(weight) / total - price * (1 - cosine);
}

// A block left out, and the one left out before it.
struct Skip {
  int block;
  int before;  // index, or -1
};

struct Branch {
  int weight = 0;  // left out
  int skips = -1;  // the last of them
  double cosine = 1;
  std::vector<float> states;
};

class Solver {
 public:
  Solver(BlockStates& states, const KnapsackOptions& options)
      : states_(states), options_(options), n_layers_(states.n_layers()) {}

  std::vector<KnapsackChoice> solve() {
    const int first = options_.whole_layers ? 0 : 2;
    const int n_together = options_.whole_layers ? 2 : 1;
    const int end_of_free = options_.whole_layers ? 2 * n_layers_ : 2 * (n_layers_ - 1);
    if (first < end_of_free) {
      live_.push_back({.states = copy(states_.full(first))});
      for (int block = first; block < 2 * n_layers_; block += n_together) {
        pass(block, n_together, block < end_of_free);
      }
    }
    return choices();
  }

 private:
  static std::vector<float> copy(std::span<const float> from) { return {from.begin(), from.end()}; }

  // From before `block` to behind it and those that go with it.
  void pass(int block, int n_together, bool may_skip) {
    run_branches(block, n_together);
    const int weight = block % 2 == 0 ? options_.attention_weight : options_.mlp_weight;
    const auto reference = states_.full(block + n_together);
    next_.clear();
    // Both lists ascend by weight; what runs comes first, and wins among equals.
    size_t skipped = 0;
    const auto take_skipped_below = [&](int limit) {
      for (; may_skip && skipped < live_.size() && live_[skipped].weight + weight <= limit; ++skipped) {
        const Branch& from = live_[skipped];
        if (from.weight + weight > options_.max_weight) return;
        const double cosine = mean_cosine(from.states, reference, states_.n_embd());
        const bool has_rival = !next_.empty() && next_.back().weight == from.weight + weight;
        if (cosine < options_.min_cosine || (has_rival && runs_rather(next_.back().cosine, cosine))) {
          continue;
        }
        if (has_rival) next_.pop_back();
        skips_.push_back({.block = block, .before = from.skips});
        next_.push_back({.weight = from.weight + weight,
                         .skips = static_cast<int>(skips_.size()) - 1,
                         .cosine = cosine,
                         .states = from.states});
      }
    };
    for (size_t i = 0; i < live_.size(); ++i) {
      take_skipped_below(live_[i].weight - 1);
      const auto states = std::span(ran_).subspan(i * states_.branch_size(), states_.branch_size());
      const double cosine =
          live_[i].weight == 0 ? 1.0 : mean_cosine(states, reference, states_.n_embd());
      if (cosine >= options_.min_cosine) {
        next_.push_back({.weight = live_[i].weight,
                         .skips = live_[i].skips,
                         .cosine = cosine,
                         .states = copy(states)});
      }
      take_skipped_below(live_[i].weight);
    }
    take_skipped_below(options_.max_weight);
    std::swap(live_, next_);
    thin_out();
  }

  bool runs_rather(double running, double skipped) const {
    return options_.whole_layers ? running > skipped : running >= skipped;
  }

  void gather_states() {
    ran_.clear();
    for (const Branch& branch : live_)
      ran_.insert(ran_.end(), branch.states.begin(), branch.states.end());
  }

  // The full model's states behind the blocks are known; those of the others are computed.
  void run_branches(int block, int n_together) {
    gather_states();
    const size_t n_known = live_.front().weight == 0 ? states_.branch_size() : 0;
    if (n_known > 0) std::ranges::copy(states_.full(block + n_together), ran_.begin());
    if (ran_.size() == n_known) return;
    for (int i = 0; i < n_together; ++i) {
      states_.run(BlockId{block + i}, std::span(ran_).subspan(n_known));
    }
  }

  void thin_out();

  std::vector<KnapsackChoice> choices() {
    std::vector<KnapsackChoice> choices;
    if (live_.empty()) {
      choices.push_back({.layers = LayerSet::full(n_layers_)});
      return choices;
    }
    gather_states();
    const std::vector<double> agreement = states_.agreement(ran_);
    for (size_t i = 0; i < live_.size(); ++i) {
      KnapsackChoice choice{.layers = LayerSet::full(n_layers_),
                            .skipped_weight = live_[i].weight,
                            .cosine = live_[i].cosine,
                            .agreement = agreement[i]};
      for (int at = live_[i].skips; at >= 0; at = skips_[static_cast<size_t>(at)].before) {
        const int block = skips_[static_cast<size_t>(at)].block;
        choice.layers.set(BlockId{block}, false);
        if (options_.whole_layers) choice.layers.set(BlockId{block + 1}, false);
      }
      choices.push_back(std::move(choice));
    }
    return choices;
  }

  BlockStates& states_;
  const KnapsackOptions& options_;
  int n_layers_;
  std::vector<Branch> live_;  // by rising weight
  std::vector<Branch> next_;
  std::vector<Skip> skips_;
  std::vector<float> ran_;
};

// Keeps the best trades at each price, and the full model.
void Solver::thin_out() {
  const auto max = static_cast<size_t>(options_.max_branches);
  if (live_.size() <= max) return;
  const int total = n_layers_ * (options_.attention_weight + options_.mlp_weight);
  std::vector<bool> keep(live_.size(), false);
  keep.front() = true;
  std::vector<std::vector<size_t>> orders;
  for (const double price : kPrices) {
    auto& order = orders.emplace_back(live_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](size_t i) { return trade(live_[i].weight, live_[i].cosine, total, price); };
    std::ranges::stable_sort(order, std::greater<>(), value);
  }
  size_t n_kept = 1;
  for (size_t rank = 0; rank < live_.size(); ++rank) {
    for (const auto& order : orders) {
      if (n_kept == max) break;
      if (keep[order[rank]]) continue;
      keep[order[rank]] = true;
      ++n_kept;
    }
  }
  size_t n = 0;
  for (size_t i = 0; i < live_.size(); ++i) {
    if (!keep[i]) continue;
    if (n != i) live_[n] = std::move(live_[i]);
    ++n;
  }
  live_.resize(n);
}

}  // namespace

std::vector<KnapsackChoice> solve_knapsack(BlockStates& states, const KnapsackOptions& options) {
  CHECK(options.attention_weight > 0 && options.mlp_weight > 0 && options.max_branches > 0);
  return Solver(states, options).solve();
}

std::vector<KnapsackChoice> best_trades(const std::vector<KnapsackChoice>& choices, int total) {
  std::vector<KnapsackChoice> best;
  for (const double price : kPrices) {
    const auto found = std::ranges::max_element(choices, {}, [&](const KnapsackChoice& choice) {
      return trade(choice.skipped_weight, choice.cosine, total, price);
    });
    const bool is_known = !best.empty() && best.back().skipped_weight == found->skipped_weight;
    if (found->skipped_weight > 0 && !is_known) best.push_back(*found);
  }
  return best;
}

}  // namespace forerun
