#include "layers/layer_search.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.h"
#include "layers/layer_selector.h"

namespace forerun {
namespace {

constexpr std::array<std::string_view, 5> kMethods = {"knapspec", "neighbour", "bayesian", "swift",
                                                      "selfsd"};

// Of the knapsack's sets, so many are tried first.
constexpr int kKnapsackCandidates = 40;

int n_skipped_blocks(const LayerSet& layers) {
  return layers.n_blocks() - layers.n_running();
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
                    .n_skipped = n_skipped_blocks(result.layers)});
}

LayerSearchResult search_subsets(LayerObjective& objective, int n_layers,
                                 const LayerSearchOptions& given) {
  LayerSearchOptions options = given;
  if (begins_with_quick_sets(options.method)) {
    const std::vector<LayerSet> quick = objective.quick_sets();
    options.first_sets.insert(options.first_sets.end(), quick.begin(), quick.end());
  }
  SubsetSearch search(layer_problem(n_layers, options), subset_options(options, objective.is_noisy()));
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

LayerSet layers_without(const Subset& skipped) {
  LayerSet layers = LayerSet::full(static_cast<int>(skipped.size()) / 2);
  for (int b = 0; b < layers.n_blocks(); ++b) {
    layers.set(BlockId{b}, !skipped[static_cast<size_t>(b)]);
  }
  return layers;
}

Subset skipped_by(const LayerSet& layers) {
  Subset skipped;
  for (int b = 0; b < layers.n_blocks(); ++b) skipped.push_back(!layers.runs(BlockId{b}));
  return skipped;
}

SubsetProblem layer_problem(int n_layers, const LayerSearchOptions& options) {
  const LayerSet uniform = uniform_layers(n_layers, options.skip);
  const auto n_blocks = static_cast<size_t>(2 * n_layers);
  SubsetProblem problem{.n_items = 2 * n_layers,
                        .is_protected = std::vector<bool>(n_blocks, false),
                        .n_skipped = n_skipped_blocks(uniform),
                        .first_sets = {}};
  if (options.method != "selfsd") {
    for (const int layer : {0, n_layers - 1}) {
      for (const BlockId block : {attention_block(layer), mlp_block(layer)}) {
        problem.is_protected[static_cast<size_t>(block)] = true;
      }
    }
  }
  if (options.method == "swift") problem.first_sets.push_back(skipped_by(uniform));
  for (const LayerSet& layers : options.first_sets) {
    Subset set = skipped_by(layers);
    for (size_t b = 0; b < std::min(set.size(), n_blocks); ++b) {
      if (problem.is_protected[b]) set[b] = false;
    }
    problem.first_sets.push_back(std::move(set));
  }
  return problem;
}

SubsetSearchOptions subset_options(const LayerSearchOptions& options, bool is_noisy) {
  SubsetSearchOptions search;
  if (begins_with_quick_sets(options.method)) {
    search = SubsetSearchOptions::changes_of_best();
    if (options.method == "bayesian") search.strategy = SubsetStrategy::kBayesian;
    if (!is_noisy) search.neighbour.noise = 0;
    if (!is_noisy) search.neighbour.retest_after = 0;
  } else if (options.method == "swift") {
    search = SubsetSearchOptions::swift();
    search.good_score = std::numeric_limits<double>::infinity();
  } else if (options.method == "selfsd") {
    search = SubsetSearchOptions::self_sd();
  } else {
    fail(ErrorCode::kInvalidArgument, "there is no search for layers '{}': choose one of {}",
         options.method, fmt::join(kMethods, ", "));
  }
  search.seed = options.seed;
  search.max_scores = options.max_candidates;
  if (options.method != "selfsd") search.max_without_progress = options.max_without_progress;
  return search;
}

LayerSearchResult search_layers(LayerObjective& objective, int n_layers,
                                const LayerSearchOptions& options) {
  return options.method == "knapspec" ? search_knapsack(objective, n_layers, options)
                                      : search_subsets(objective, n_layers, options);
}

}  // namespace forerun
