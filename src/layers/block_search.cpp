#include "layers/block_search.h"

#include <algorithm>

#include "layers/layer_selector.h"

namespace forerun {
namespace {

Subset skipped_by(const LayerSet& layers) {
  Subset skipped;
  for (int b = 0; b < layers.n_blocks(); ++b) skipped.push_back(!layers.runs(BlockId{b}));
  return skipped;
}

}  // namespace

LayerSet layers_without(const Subset& skipped) {
  LayerSet layers = LayerSet::full(static_cast<int>(skipped.size()) / 2);
  for (int b = 0; b < layers.n_blocks(); ++b) {
    layers.set(BlockId{b}, !skipped[static_cast<size_t>(b)]);
  }
  return layers;
}

SubsetProblem block_problem(int n_layers, SubsetStrategy strategy, const BlockSearchOptions& options) {
  const Subset uniform = skipped_by(uniform_layers(n_layers, options.skip));
  const auto n_blocks = static_cast<size_t>(2 * n_layers);
  SubsetProblem problem{.n_items = 2 * n_layers,
                        .is_protected = std::vector<bool>(n_blocks, false),
                        .n_skipped = n_skipped(uniform),
                        .first_sets = {}};
  if (strategy != SubsetStrategy::kSelfSd) {
    for (const size_t block : {size_t{0}, size_t{1}, n_blocks - 2, n_blocks - 1}) {
      problem.is_protected[block] = true;
    }
  }
  if (strategy == SubsetStrategy::kSwift) problem.first_sets.push_back(uniform);
  for (const LayerSet& layers : options.first_sets) {
    Subset set = skipped_by(layers);
    for (size_t b = 0; b < std::min(set.size(), n_blocks); ++b) {
      if (problem.is_protected[b]) set[b] = false;
    }
    problem.first_sets.push_back(std::move(set));
  }
  return problem;
}

SubsetSearchOptions subset_options(SubsetStrategy strategy, const BlockSearchOptions& options,
                                   bool is_noisy) {
  SubsetSearchOptions search =
      strategy == SubsetStrategy::kSelfSd ? SubsetSearchOptions::self_sd() : SubsetSearchOptions();
  search.strategy = strategy;
  search.seed = options.seed;
  search.max_scores = options.max_candidates;
  if (strategy != SubsetStrategy::kSelfSd) search.max_without_progress = options.max_without_progress;
  if (!is_noisy) search.neighbour.noise = 0;
  if (!is_noisy) search.neighbour.retest_after = 0;
  return search;
}

}  // namespace forerun
