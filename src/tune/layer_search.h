// Searches for the blocks that the model drafts best without, before any text is made.
//
// What a set is worth says a LayerObjective; how candidates are found, a strategy of
// optimise/subset_search.h:
//
//   neighbour  small changes of the best set so far, of any size
//   bayesian   changes of the best set that a model of which blocks are needed suggests; of any
//              size, and with the fewest candidates where scores have no noise
//   (both begin with the objective's quick sets, if it has any)
//   swift      SWIFT's, as published: random sets of a fixed size, now and then a Bayesian step
//   selfsd     Draft & Verify's, as published: a Bayesian step each time, sets of any size
//
// or KnapSpec's dynamic programme through the model's blocks (layers/knapspec.h), for objectives that
// have states: `knapspec`. Candidates are then the sets it gives, one for each weight.
//
// A search is deterministic for a seed and an objective without noise. Not thread-safe.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/block_search.h"
#include "model/layer_set.h"
#include "tune/layer_objective.h"

namespace forerun {

struct LayerSearchProgress {
  int n_candidates = 0;
  int max_candidates = 0;
  double best_speedup = 0;
  int n_skipped = 0;  // blocks that the best set leaves out
};

struct LayerSearchOptions : BlockSearchOptions {
  std::string method = "knapspec";
  double cap = 1.0;  // knapspec: the share of the blocks' weight that may be left out
  // Called after each candidate. May be empty.
  std::function<void(const LayerSearchProgress&)> progress = {};
  // Asked before each candidate; true ends the search with what it has. May be empty.
  std::function<bool()> is_cancelled = {};
};

struct LayerSearchResult {
  LayerSet layers = LayerSet::full(1);
  double speedup = 0;
  int n_candidates = 0;
  std::vector<double> best_so_far = {};  // speedup of the best set after each candidate
};

// The best set found; the full model and 0 if the search was cancelled at once. Throws Error for
// a method that there is not, and for a model without blocks that may be left out.
LayerSearchResult search_layers(LayerObjective& objective, int n_layers,
                                const LayerSearchOptions& options);

// Whether a method begins with the objective's quick sets.
bool begins_with_quick_sets(std::string_view method);

// The names of the methods.
std::span<const std::string_view> layer_search_methods();

}  // namespace forerun
