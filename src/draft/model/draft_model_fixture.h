// A model that drafts for its own text: all it drafts is right.
#pragma once

#include "draft/model/draft_model.h"
#include "layers/planted_model.h"

namespace forerun::test {

class DraftModelFixture : public PlantedTest {
 protected:
  DraftModelFixture() {
    draft_->model = model_;
    draft_->executor =
        std::make_unique<Executor>(model_, ExecutorOptions{.kv = {.n_cells = 1024}, .max_rows = 128});
    draft_->n_slots = 2;
    draft_->n_context = 512;
    // Not measured but given: a token of the draft takes the tenth part of a step, 64 of the text as
    // much as six steps.
    draft_->costs = std::make_unique<PassCosts>(
        Calibration{.curve = CostCurve({{.n_rows = 1, .seconds = 2.6, .seconds_per_token = 0},
                                        {.n_rows = 64, .seconds = 166, .seconds_per_token = 0}}),
                    .blocks = {}},
        PassCosts::Known::kGiven);
  }

  WrittenText text_behind(size_t n_prompt) {
    std::vector<TokenId> prompt;
    for (size_t i = 0; i < n_prompt; ++i) prompt.push_back(TokenId{1 + static_cast<int>(i * 37 % 290)});
    return WrittenText(*executor_, 0.0f, 2, prompt);
  }

  std::shared_ptr<DraftModel> draft_ = std::make_shared<DraftModel>();
};

}  // namespace forerun::test
