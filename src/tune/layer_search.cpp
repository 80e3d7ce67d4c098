#include "tune/layer_search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace forerun {
namespace {

constexpr std::array<std::string_view, 5> kMethods = {"knapspec", "neighbour", "bayesian", "swift",
                                                      "selfsd"};

// Of the knapsack's sets, so many are tried first.
constexpr int kKnapsackCandidates = 40;

SubsetStrategy strategy_of(std::string_view method) {
  if (method == "neighbour") return SubsetStrategy::kNeighbour;
  if (method == "bayesian") return SubsetStrategy::kBayesian;
  if (method == "swift") return SubsetStrategy::kSwift;
  if (method == "selfsd") return SubsetStrategy::kSelfSd;
  fail(ErrorCode::kInvalidArgument, "there is no search for layers '{}': choose one of {}", method,
       fmt::join(kMethods, ", "));
}

bool is_cancelled(const LayerSearchOptions& options) {
  return options.is_cancelled && options.is_cancelled();
}

// After a candidate.
void report(const LayerSearchOptions& options, int max_candidates, LayerSearchResult& result) {
  ++result.n_candidates;
  result.best_so_far.push_back(result.speedup);
  if (!options.progress) return;
  options.progress({.n_candidates = result.n_candidates,
                    .max_candidates = max_candidates,
                    .best_speedup = result.speedup,
                    .n_skipped = result.layers.n_blocks() - result.layers.n_running()});
}

LayerSearchResult search_subsets(LayerObjective& objective, int n_layers,
                                 const LayerSearchOptions& given) {
  LayerSearchOptions options = given;
  const SubsetStrategy strategy = strategy_of(options.method);
  if (begins_with_quick_sets(options.method)) {
    const std::vector<LayerSet> quick = objective.quick_sets();
    options.first_sets.insert(options.first_sets.end(), quick.begin(), quick.end());
  }
  SubsetSearch search(block_problem(n_layers, strategy, options),
                      subset_options(strategy, options, objective.is_noisy()));
  LayerSearchResult result{.layers = LayerSet::full(n_layers), .best_so_far = {}};
  while (!search.ended() && !is_cancelled(options)) {
    const LayerSet candidate = layers_without(search.propose());
    const double score = objective.speedup(candidate);
    search.tell(score);
    const LayerSet best = layers_without(search.best()->set);
    // What a search says of the best set is an estimate, since scores may be noisy.
    if (objective.is_noisy()) {
      result.speedup = search.best()->score;
    } else if (best == candidate) {
      result.speedup = score;
    }
    result.layers = best;
    report(options, options.max_candidates, result);
  }
  return result;
}

LayerSearchResult search_knapsack(LayerObjective& objective, int n_layers,
                                  const LayerSearchOptions& options) {
  LayerSearchResult result{.layers = LayerSet::full(n_layers), .best_so_far = {}};
  std::vector<LayerSet> sets = options.first_sets;
  const std::vector<LayerSet> found = objective.knapsack_sets(options.cap);
  if (found.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "knapspec looks at states of texts: choose another method, or the expected objective");
  }
  sets.insert(sets.end(), found.begin(), found.end());
  // Neighbouring weights hardly differ: every so many of them first, then those around the best.
  const auto max = static_cast<size_t>(std::min(options.max_candidates, kKnapsackCandidates));
  const size_t step = (sets.size() + max - 1) / max;
  const size_t n_first = (sets.size() + step - 1) / step;
  const auto n_all = static_cast<int>(n_first + (step > 1 ? 2 * (step - 1) : 0));
  size_t best = 0;
  const auto try_set = [&](size_t i) {
    if (is_cancelled(options) || result.n_candidates == options.max_candidates) return;
    const double score = objective.speedup(sets[i]);
    if (score > result.speedup) {
      result.speedup = score;
      result.layers = sets[i];
      best = i;
    }
    report(options, n_all, result);
  };
  for (size_t i = 0; i < sets.size(); i += step) try_set(i);
  const size_t around = best;
  for (size_t i = around - std::min(around, step - 1); i < std::min(around + step, sets.size()); ++i) {
    if (i % step != 0) try_set(i);
  }
  return result;
}

}  // namespace

bool begins_with_quick_sets(std::string_view method) {
  return method == "neighbour" || method == "bayesian";
}

std::span<const std::string_view> layer_search_methods() {
  return kMethods;
}

LayerSearchResult search_layers(LayerObjective& objective, int n_layers,
                                const LayerSearchOptions& options) {
  return options.method == "knapspec" ? search_knapsack(objective, n_layers, options)
                                      : search_subsets(objective, n_layers, options);
}

}  // namespace forerun
