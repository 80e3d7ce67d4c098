// A smaller model drafts: speculative decoding as Leviathan et al. and Chen et al. (2023) have it.
//
// It has a cache of its own, which follows the text: what it read to draft stays where the text
// took it, the rest is rolled back, and what the text got beside that is read with the next draft.
// So a prompt is read when its first draft is made: the answer's first token does not wait for it.
//
// Chains and trees as in model_drafter.h. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "draft/model/model_drafter.h"
#include "model/slots.h"

namespace forerun {

// Which model is to draft, and where.
struct DraftModelChoice {
  std::string model = {};       // path or name of a GGUF file
  std::string device = "same";  // as the model that verifies, or a device's name

  void describe(OptionVisitor& visitor) {
    visitor.visit(
        {.name = "model",
         .help = "The model that drafts: path or name of a GGUF file",
         .if_empty = "draft needs a second, smaller model with the same vocabulary: --draft-model FILE"},
        model, {});
    visitor.visit({"device", "Where it computes: same, or as --device"}, device, {});
  }
};

// A model that is there to draft with.
struct DraftModel {
  std::shared_ptr<const Model> model;
  std::unique_ptr<Executor> executor;  // its cache has n_slots * n_context cells
  std::unique_ptr<PassCosts> costs;    // of its passes
  int n_slots = 1;                     // requests that it drafts for at once
  int n_context = 0;                   // tokens of each, those of a draft included
};

class DraftModelDrafter final : public ModelDrafter {
 public:
  DraftModelDrafter(const ChainOptions& options, std::shared_ptr<DraftModel> draft,
                    std::unique_ptr<StoppingRule> stopping = nullptr)
      : ModelDrafter(DraftSource::kDraftModel, options, *draft->executor, *draft->costs,
                     std::move(stopping)),
        options_(options),
        draft_(std::move(draft)),
        slots_(*draft_->executor, draft_->n_slots, draft_->n_context) {}

  std::unique_ptr<RequestModelDrafter> begin(const RequestView& request) override;
  double token_seconds(const DraftPlan& /*plan*/, int n_context, int n_requests) const override {
    return costs().pass(1, n_context, n_requests);
  }

 private:
  class OfRequest;

  ChainOptions options_;
  std::shared_ptr<DraftModel> draft_;
  Slots slots_;
  double usual_answer_ = 128;  // tokens
};

}  // namespace forerun
