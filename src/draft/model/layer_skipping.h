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
#include <optional>
#include <span>
#include <vector>

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

  std::unique_ptr<RequestModelDrafter> begin(const RequestView& request) override {
    return std::make_unique<OfRequest>(request, *selector_, stopping());
  }
  bool wants_prompt_state() const override { return selector_->wants_prompt_state(); }
  double token_seconds(const DraftPlan& plan, int n_context, int n_requests) const override {
    return costs().pass_with(plan.layers, n_context, n_requests);
  }
  // Which blocks run.
  std::vector<float> learnt() const override {
    std::vector<float> runs;
    const auto layers = selector_->learnt();
    for (int block = 0; layers && block < layers->n_blocks(); ++block) {
      runs.push_back(layers->runs(BlockId{block}) ? 1.0f : 0.0f);
    }
    return runs;
  }
  void restore(std::span<const float> learnt) override {
    if (learnt.empty() || learnt.size() % 2 != 0) return;
    LayerSet layers = LayerSet::full(static_cast<int>(learnt.size() / 2));
    for (size_t block = 0; block < learnt.size(); ++block) {
      layers.set(BlockId{static_cast<int>(block)}, learnt[block] != 0);
    }
    selector_->restore(layers);
  }

 private:
  class OfRequest final : public RequestModelDrafter {
   public:
    OfRequest(const RequestView& request, LayerSelector& selector, StoppingRule* stopping)
        : RequestModelDrafter(request, stopping), selector_(selector), plan_(selector.begin(request)) {}

    std::optional<DraftPlan> plan() override { return plan_(); }
    std::optional<ChainStart> start() override {
      return ChainStart{.sequence = request().sequence(), .unread = request().text().last(1)};
    }
    void finish() override { selector_.finish(); }

   private:
    void observe(const ChainOutcome& outcome) override { selector_.observe(outcome); }

    LayerSelector& selector_;
    NextPlan plan_;
  };

  std::unique_ptr<LayerSelector> selector_;
};

}  // namespace forerun
