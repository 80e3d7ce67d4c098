// The layer set as a knapsack, chosen anew as the text goes on: KnapSpec.
//
// "KnapSpec: Self-Speculative Decoding via Adaptive Layer Selection as a Knapsack Problem".
// Every so many steps the dynamic programme (knapsack.h) runs over the tokens of the last few
// verifications, with the weights that attention and MLP have at this length of the text. Of
// the sets that come of it, one for each weight, the one is taken that gives the most tokens
// per time at its best length of draft (cost/draft_value.h); not to draft is one of the
// choices.
//
// Where this differs from the published program: agreement on five verifications' tokens says
// little (most sets have all of them right), so the best trades (knapsack.h), and the set chosen
// before, are compared on the last `check` tokens, in windows as long as drafts are; drafts then count
// too, and change the length of the next ones (`adapt`; without it drafts end where the drafter's
// threshold says so). The programme is kept to `branches` branches of `window` tokens (0: no limit), and
// its time to a share of the requests'. `cap` is the share of the weight that may be left out: the
// authors' is a half.
#pragma once

#include <memory>
#include <vector>

#include "layers/interval_selector.h"
#include "layers/knapsack.h"

namespace forerun {

struct KnapSpecOptions {
  IntervalOptions when = {};
  double cap = 1.0;         // share of the weight that may be left out
  double min_cosine = 0.5;  // of a branch to be kept
  int branches = 8;         // 0: all
  int window = 4;           // of the last verifications, at most
  int check = 64;           // tokens that the best sets are compared on; 0: as published
  bool adapt = true;        // lengths of drafts, to what becomes of them; false: as published

  void describe(OptionVisitor& visitor);
};

// A programme with the weights of blocks behind `n_context` tokens: 1 for the cheaper kind, and as often
// that as it costs for the other.
KnapsackOptions block_weights(const PassCosts& costs, int n_layers, int n_context);

// What can be left out, by rising weight; the programme of `options` over `states` of a text
// with `n_context` tokens.
std::vector<KnapsackChoice> knapspec_choices(BlockStates& states, const KnapSpecOptions& options,
                                             const PassCosts& costs, int n_context);

// The best trades (knapsack.h) of a programme with a few branches, for a search to begin with:
// `states` are of kQuickTokens tokens or so.
constexpr int kQuickBranches = 8;
constexpr size_t kQuickTokens = 4;
std::vector<KnapsackChoice> quick_choices(BlockStates& states, const PassCosts& costs, int n_context);

std::unique_ptr<LayerSelector> make_knapspec(const KnapSpecOptions& options,
                                             const SelectorResources& resources);

}  // namespace forerun
