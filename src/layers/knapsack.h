// The blocks to leave out as a knapsack: KnapSpec's dynamic programme.
//
// "KnapSpec: Self-Speculative Decoding via Adaptive Layer Selection as a Knapsack Problem".
// Blocks have weights, what they cost. g(i, j) is the branch (block_states.h) that has come to
// boundary i with blocks of weight j left out and whose states are the most like the full
// model's there:
//
//   g(i + 1, j) = the likest of  block_i(g(i, j))  and  g(i, j - w_i)
//
// where of equals the block runs, and a branch less alike than `min_cosine` is dropped.
// g(i, 0) is the full model. The first and the last layer are never left out.
// CLaSp (Chen et al., 2025) does the same with whole layers.
//
// It is a heuristic: one branch is kept for each (i, j), and what is likest half way need not
// be likest in the end. Its cost is a pass of up to 2L branches through every block; where
// that is too much, `max_branches` keeps the best trades: those that leave out the most when a
// lost share of likeness costs so much, for several such prices.
#pragma once

#include <limits>
#include <vector>

#include "layers/block_states.h"
#include "model/layer_set.h"

namespace forerun {

struct KnapsackOptions {
  int attention_weight = 1;
  int mlp_weight = 1;
  int max_weight = std::numeric_limits<int>::max();    // that may be left out
  double min_cosine = 0.5;                             // of a branch to be kept
  int max_branches = std::numeric_limits<int>::max();  // kept behind each block
  // CLaSp's programme: layers go as a whole, with attention_weight, any of them, and of equals
  // the one that is left out.
  bool whole_layers = false;
};

// A set of blocks that came through.
struct KnapsackChoice {
  LayerSet layers;
  int skipped_weight = 0;
  double skipped_share = 0;  // of the weight of all blocks
  double cosine = 1;         // of the states behind the last block
  double agreement = 1;      // of what the model says with them
};

// By rising weight left out; the first leaves out nothing.
std::vector<KnapsackChoice> solve_knapsack(BlockStates& states, const KnapsackOptions& options);

// Those of them that are the best trade of likeness for weight left out at some price, from
// cheap to dear; the full model is not among them.
std::vector<KnapsackChoice> best_trades(const std::vector<KnapsackChoice>& choices);

}  // namespace forerun
