// The model drafts for itself with some of its blocks left out: self-speculative decoding.
//
// Zhang et al., "Draft & Verify", ACL 2024; SWIFT (Xia et al., ICLR 2025) and its followers.
// Which blocks run is a LayerSelector's business (layers/layer_selector.h); this drafts chains
// (model_drafter.h) with what it says.
//
// Drafts read the keys and values that the full model committed, and write their own into
// scratch cells behind them, which verification overwrites: no second cache, no second set of
// weights. Requests of one pass draft together.
#pragma once

#include <memory>

#include "draft/model/model_drafter.h"

namespace forerun {

class LayerSkippingDrafter final : public ModelDrafter {
 public:
  // The executor is the one that verifies; it and the costs outlive this.
  LayerSkippingDrafter(const ChainOptions& options, Executor& executor, PassCosts& costs,
                       std::unique_ptr<LayerSelector> selector,
                       std::unique_ptr<StoppingRule> stopping = nullptr)
      : ModelDrafter(DraftSource::kLayers, options, executor, costs, std::move(stopping)),
        selector_(std::move(selector)) {}

  std::unique_ptr<RequestModelDrafter> begin(const RequestView& request) override;
  bool wants_prompt_state() const override { return selector_->wants_prompt_state(); }
  double token_seconds(const DraftPlan& plan, int n_context, int n_requests) const override {
    return costs().pass_with(plan.layers, n_context, n_requests);
  }
  // Which blocks run.
  std::vector<float> learnt() const override;
  void restore(std::span<const float> learnt) override;

 private:
  std::unique_ptr<LayerSelector> selector_;
};

}  // namespace forerun
