// The model drafts for itself with some of its blocks left out: self-speculative decoding.
//
// Zhang et al., "Draft & Verify", ACL 2024; SWIFT (Xia et al., ICLR 2025) and its followers.
// Which blocks run is a LayerSelector's business (layers/layer_selector.h); this drafts with
// what it says.
//
// Drafts read the keys and values that the full model committed, and write their own into
// scratch cells behind them, which verification overwrites: no second cache, no second set of
// weights. Requests of one pass draft together, a token of each at a time.
//
// A draft is a chain that ends behind the first token whose probability (of the model's own
// distribution, before temperature) is below a threshold; with `siblings` each of its tokens
// has the next likeliest beside it, the more the less sure it is: SWIFT's tree.
//
// Where a gate knows what rows cost, tokens that texts propose (DraftJob::hint) are read beside
// the chain's last one. They are a guess at the draft as drafts are a guess at the text: as many
// as it would draw itself, the chain grows by in one pass, and it is the same chain.
//
// Tokens are drawn with the target's own noise (sampling/sampler.h), so that a draft whose
// distribution is like the target's mostly draws the target's token. Where the verifier
// compares distributions, draws have noise of their own and the chain no siblings.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/option_visitor.h"
#include "draft/drafter.h"
#include "layers/draft_gate.h"
#include "layers/layer_selector.h"
#include "model/executor.h"

namespace forerun {

struct SelfDraftOptions {
  int tokens = 25;         // of a chain at most
  double threshold = 0.8;  // a chain ends behind a token that is less probable
  bool siblings = false;

  void describe(OptionVisitor& visitor);
};

class SelfMethod final : public DraftMethod {
 public:
  // The executor is the one that verifies, and outlives this. With a gate it drafts only what
  // pays.
  SelfMethod(const SelfDraftOptions& options, Executor& executor,
             std::unique_ptr<LayerSelector> selector, std::unique_ptr<DraftGate> gate = nullptr);
  ~SelfMethod() override;

  std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) override;
  void draft(std::span<const DraftJob> jobs) override;
  bool wants_prompt_state() const override { return selector_->wants_prompt_state(); }

 private:
  class SelfDrafter;
  struct Chain;

  std::optional<DraftPlan> plan(SelfDrafter& drafter, const DraftJob& job);
  void begin_chain(SelfDrafter& drafter, const DraftPlan& plan, const DraftJob& job);
  void forward(const LayerSet& layers);
  void add_rows(Chain& chain);
  void add_hinted_rows(Chain& chain);
  void grow(Chain& chain, std::span<const float> logits);
  void add_siblings(Chain& chain, std::span<const float> logits, const DraftNode& spine, double total);

  SelfDraftOptions options_;
  Executor& executor_;
  std::unique_ptr<LayerSelector> selector_;
  std::unique_ptr<DraftGate> gate_;  // or nullptr

  // Reused from draft to draft.
  std::vector<Chain> chains_;
  Pass pass_;
  std::vector<int32_t> path_;  // of a hint
  std::vector<double> path_chances_;
  SamplerScratch scratch_;
  SelectionScratch selection_;
  std::vector<ScoredToken> likeliest_;
};

}  // namespace forerun
