// The layer set as a knapsack, chosen anew as the text goes on: KnapSpec.
//
// "KnapSpec: Self-Speculative Decoding via Adaptive Layer Selection as a Knapsack Problem".
// Every so many steps the dynamic programme (knapsack.h) runs over the tokens of the last few
// verifications, with the weights that attention and MLP have at this length of the text. Of
// the sets that come of it, one for each weight, the one is taken that gives the most tokens
// per time at its best length of draft (budget/draft_value.h); not to draft is one of the
// choices.
//
// Where this differs from the published program: agreement on five verifications' tokens says
// little (most sets have all of them right), so the best trades (knapsack.h) are compared on
// the last `check` tokens, in windows as long as drafts are; drafts then count too, and change the
// length of the next ones. The programme is kept to `branches` branches of `window` tokens (0: no
// limit), and its time to a share of the requests'. `cap` is the share of the weight that may be left
// out: the authors' is a half.
#pragma once

#include <optional>
#include <span>

#include "cost/pass_costs.h"
#include "layers/agreement.h"
#include "layers/agreement_count.h"
#include "layers/idle_blocks.h"
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

  void describe(OptionVisitor& visitor);
};

// The weights of blocks behind `n_context` tokens: 1 for the cheaper kind, and as often that as
// it costs for the other.
struct BlockWeights {
  int attention;
  int mlp;

  int of_layers(int n) const { return n * (attention + mlp); }
};
BlockWeights block_weights(const PassCosts& costs, int n_layers, int n_context);

// What can be left out, by rising weight; the programme of `options` over `states` of a text
// with `n_context` tokens.
std::vector<KnapsackChoice> knapspec_choices(BlockStates& states, const KnapSpecOptions& options,
                                             const PassCosts& costs, int n_context);

// The best trades (knapsack.h) of a programme with a few branches, for a search to begin with:
// `states` are of kQuickTokens tokens or so.
constexpr int kQuickBranches = 8;
constexpr size_t kQuickTokens = 4;
std::vector<KnapsackChoice> quick_choices(BlockStates& states, const PassCosts& costs, int n_context);

class KnapSpecSelector final : public IntervalSelector {
 public:
  // The executor and the costs outlive it.
  KnapSpecSelector(const KnapSpecOptions& options, Executor& executor, const PassCosts& costs);

  std::optional<LayerSet> learnt() const override;
  void restore(const LayerSet& learnt) override;

 private:
  // A set that drafts, and how often what it drafts is right.
  struct Chosen {
    LayerSet layers;
    AgreementCount count;
  };

  bool look(const RequestView& request, size_t n_recent) override;
  std::optional<DraftPlan> plan(int n_context) override;
  void observe(const ChainOutcome& outcome) override;
  double look_seconds(int n_context) const override;
  bool promises_much(const RequestView& request, TimeShare& time) override {
    return idle_blocks_.promises_much(request, time);
  }

  static Chosen counted(const LayerSet& layers, double agreement, size_t n_tokens);
  Chosen checked(const KnapsackChoice& choice, size_t n_tokens,
                 std::span<const AgreementWindow> windows);
  double value(const Chosen& chosen, int n_context) const;

  KnapSpecOptions options_;
  Executor& executor_;
  const PassCosts& costs_;
  AgreementProbe probe_;
  IdleBlockCheck idle_blocks_;
  std::optional<Chosen> chosen_;  // nullopt: nothing yet
};

}  // namespace forerun
