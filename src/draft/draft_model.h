// A smaller model drafts: speculative decoding as Leviathan et al. and Chen et al. (2023) have it.
//
// It has a cache of its own, which follows the text: what it read to draft stays where the text
// took it, the rest is rolled back, and what the text got beside that is read with the next draft.
// So a prompt is read when its first draft is made: the answer's first token does not wait for it.
//
// Chains and trees as in chains.h. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/chains.h"
#include "model/slots.h"

namespace forerun {

// Which model is to draft, and where.
struct DraftModelChoice {
  std::string model = {};       // path or name of a GGUF file
  std::string device = "same";  // as the model that verifies, or a device's name
};

// A model that is there to draft with.
struct DraftModel {
  std::shared_ptr<const Model> model;
  std::unique_ptr<Executor> executor;              // its cache has n_slots * n_context cells
  int n_slots = 1;                                 // requests that it drafts for at once
  int n_context = 0;                               // tokens of each, those of a draft included
  std::function<const Calibration&()> costs = {};  // of its passes
};

// What its tokens take; measures its passes first, if they are not known. It outlives what it
// returns.
DraftCost draft_model_cost(const DraftModel& draft);

class DraftModelMethod final : public DraftMethod {
 public:
  DraftModelMethod(const ChainOptions& options, std::shared_ptr<DraftModel> draft, DraftControl control);
  ~DraftModelMethod() override;

  std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) override;
  void draft(std::span<const DraftJob> jobs) override;

 private:
  class ModelDrafter;

  // Reads what cannot be a draft's first rows. false: there is no room for the text.
  bool catch_up(ModelDrafter& drafter);

  ChainOptions options_;
  std::shared_ptr<DraftModel> draft_;
  DraftControl control_;
  Slots slots_;
  ChainGrower grower_;
  DraftPlan plan_;
  double usual_answer_ = 128;  // tokens
};

}  // namespace forerun
