// What the model answers to prompts, as texts to learn from.
#pragma once

#include <functional>
#include <vector>

#include "engine/stepper.h"
#include "layers/search_text.h"

namespace forerun {

struct AnsweringOptions {
  GenerationOptions generation;
  std::function<void(double share)> progress = {};  // may be empty
  std::function<bool()> is_cancelled = {};          // asked before every pass; may be empty
};

// As many prompts side by side as the stepper has slots. Answers of no token are left out. When
// cancelled, those that are complete. Throws Error. However it ends, the stepper has none of these
// requests any more.
std::vector<SearchText> answer_prompts(Stepper& stepper,
                                       const std::vector<std::vector<TokenId>>& prompts,
                                       const AnsweringOptions& options);

}  // namespace forerun
