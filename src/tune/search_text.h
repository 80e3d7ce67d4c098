// Texts that models are tuned on: prompts, and what the model itself answered.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "model/executor.h"

namespace forerun {

struct SearchText {
  std::vector<TokenId> tokens;  // the prompt, then the answer
  size_t n_prompt = 0;
};

// Reads and commits text behind what the sequence has, in as many passes as it takes. Throws Error
// where it does not fit.
void read_all(Executor& executor, SequenceId sequence, std::span<const TokenId> text);

}  // namespace forerun
