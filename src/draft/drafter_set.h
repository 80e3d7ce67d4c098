// What a way to speculate drafts with.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "draft/drafter.h"
#include "draft/model/model_drafter.h"

namespace forerun {

struct DrafterSet {
  std::vector<std::unique_ptr<Drafter>> texts = {};
  std::vector<std::unique_ptr<ModelDrafter>> models = {};

  bool wants_prompt_state() const {
    return std::ranges::any_of(models,
                               [](const auto& drafter) { return drafter->wants_prompt_state(); });
  }
};

}  // namespace forerun
