// Which blocks to leave out, as a search for items to skip (optimise/subset_search.h): for
// searches before any text is made (tune/layer_search.h) and beside it (swift.h).
#pragma once

#include <cstdint>
#include <vector>

#include "model/layer_set.h"
#include "optimise/subset_search.h"

namespace forerun {

struct BlockSearchOptions {
  double skip = 0.45;  // swift: the share of the blocks left out
  int max_candidates = 1000;
  int max_without_progress = 300;  // self-sd goes on to the last candidate
  uint64_t seed = 1;
  // Tried before all others: sets that were good for other text.
  std::vector<LayerSet> first_sets = {};
};

// The items are the model's blocks. The first and the last layer are kept, but for self-sd, whose
// authors do not.
SubsetProblem block_problem(int n_layers, SubsetStrategy strategy, const BlockSearchOptions& options);
SubsetSearchOptions subset_options(SubsetStrategy strategy, const BlockSearchOptions& options,
                                   bool is_noisy);

LayerSet layers_without(const Subset& skipped);

}  // namespace forerun
