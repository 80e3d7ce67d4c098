// The model drafts for itself with some of its blocks left out: self-speculative decoding.
//
// Zhang et al., "Draft & Verify", ACL 2024; SWIFT (Xia et al., ICLR 2025) and its followers.
// Which blocks run is a LayerSelector's business (layers/layer_selector.h); this drafts chains
// (chains.h) with what it says.
//
// Drafts read the keys and values that the full model committed, and write their own into
// scratch cells behind them, which verification overwrites: no second cache, no second set of
// weights. Requests of one pass draft together.
#pragma once

#include <memory>
#include <span>

#include "draft/chains.h"

namespace forerun {

class SelfMethod final : public DraftMethod {
 public:
  // The executor is the one that verifies, and outlives this. With a gate it drafts only what
  // pays.
  SelfMethod(const ChainOptions& options, Executor& executor, std::unique_ptr<LayerSelector> selector,
             DraftControl control = {});
  ~SelfMethod() override;

  std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) override;
  void draft(std::span<const DraftJob> jobs) override;
  bool wants_prompt_state() const override { return selector_->wants_prompt_state(); }

 private:
  class SelfDrafter;

  ChainOptions options_;
  Executor& executor_;
  std::unique_ptr<LayerSelector> selector_;
  DraftControl control_;
  ChainGrower grower_;
};

}  // namespace forerun
