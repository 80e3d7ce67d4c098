#include "layers/knapsack.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace forerun {
namespace {

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
      : states_(states), options_(options), n_layers_(states.n_layers()) {
    const int all = n_layers_ * (options.attention_weight + options.mlp_weight);
    max_weight_ = static_cast<int>(std::floor(all * options.max_skipped));
  }

  std::vector<KnapsackChoice> solve() {
    if (n_layers_ > 2) {
      live_.push_back({.states = copy(states_.full(2))});
      for (int block = 2; block < 2 * n_layers_; ++block) pass(block);
    }
    return choices();
  }

 private:
  static std::vector<float> copy(std::span<const float> from) { return {from.begin(), from.end()}; }

  // From before `block` to behind it.
  void pass(int block) {
    run_branches(block);
    const int weight = block % 2 == 0 ? options_.attention_weight : options_.mlp_weight;
    const bool may_skip = block < 2 * (n_layers_ - 1);
    const auto reference = states_.full(block + 1);
    next_.clear();
    // Both lists ascend by weight; what runs comes first, and wins among equals.
    size_t skipped = 0;
    const auto take_skipped_below = [&](int limit) {
      for (; may_skip && skipped < live_.size() && live_[skipped].weight + weight <= limit; ++skipped) {
        const Branch& from = live_[skipped];
        if (from.weight + weight > max_weight_) return;
        const double cosine = mean_cosine(from.states, reference, states_.n_embd());
        const bool has_rival = !next_.empty() && next_.back().weight == from.weight + weight;
        if (cosine < options_.min_cosine || (has_rival && cosine <= next_.back().cosine)) continue;
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
    take_skipped_below(max_weight_);
    std::swap(live_, next_);
    thin_out();
  }

  // The full model's states behind the block are known; those of the others are computed.
  void run_branches(int block) {
    ran_.clear();
    for (const Branch& branch : live_)
      ran_.insert(ran_.end(), branch.states.begin(), branch.states.end());
    const size_t n_known = live_.front().weight == 0 ? states_.branch_size() : 0;
    if (n_known > 0) std::ranges::copy(states_.full(block + 1), ran_.begin());
    if (ran_.size() > n_known) states_.run(BlockId{block}, std::span(ran_).subspan(n_known));
  }

  void thin_out();

  std::vector<KnapsackChoice> choices() {
    std::vector<KnapsackChoice> choices;
    if (live_.empty()) {
      choices.push_back({.layers = LayerSet::full(n_layers_)});
      return choices;
    }
    ran_.clear();
    for (const Branch& branch : live_)
      ran_.insert(ran_.end(), branch.states.begin(), branch.states.end());
    const std::vector<double> agreement = states_.agreement(ran_);
    for (size_t i = 0; i < live_.size(); ++i) {
      KnapsackChoice choice{.layers = LayerSet::full(n_layers_),
                            .skipped_weight = live_[i].weight,
                            .cosine = live_[i].cosine,
                            .agreement = agreement[i]};
      for (int at = live_[i].skips; at >= 0; at = skips_[static_cast<size_t>(at)].before) {
        choice.layers.set(BlockId{skips_[static_cast<size_t>(at)].block}, false);
      }
      choices.push_back(std::move(choice));
    }
    return choices;
  }

  BlockStates& states_;
  const KnapsackOptions& options_;
  int n_layers_;
  int max_weight_;
  std::vector<Branch> live_;  // by rising weight
  std::vector<Branch> next_;
  std::vector<Skip> skips_;
  std::vector<float> ran_;
};

// Keeps branches that leave out more than others without being less alike, as many as may be,
// spread over what they leave out; the full model always.
void Solver::thin_out() {
  const auto max = static_cast<size_t>(options_.max_branches);
  if (live_.size() <= max) return;
  std::vector<Branch> best;  // from the heaviest down
  for (auto branch = live_.rbegin(); branch != live_.rend(); ++branch) {
    const bool is_better = best.empty() || branch->cosine > best.back().cosine;
    if (is_better || branch->weight == 0) best.push_back(std::move(*branch));
  }
  std::reverse(best.begin(), best.end());
  live_.clear();
  const size_t n = std::min(max, best.size());
  for (size_t i = 0; i < n; ++i) {
    const size_t from = n == 1 ? 0 : i * (best.size() - 1) / (n - 1);
    live_.push_back(std::move(best[from]));
  }
}

}  // namespace

std::vector<KnapsackChoice> solve_knapsack(BlockStates& states, const KnapsackOptions& options) {
  CHECK(options.attention_weight > 0 && options.mlp_weight > 0 && options.max_branches > 0);
  return Solver(states, options).solve();
}

}  // namespace forerun
