// Texts that models are tuned on: prompts, and what the model itself answers to them.
#pragma once

#include <forerun/generation_options.h>

#include <functional>
#include <span>
#include <vector>

#include "model/executor.h"
#include "text/vocabulary.h"

namespace forerun {

struct SearchText {
  std::vector<TokenId> tokens;  // the prompt, then the answer
  size_t n_prompt = 0;
};

// Always the most probable token.
GenerationOptions greedy_options(int max_tokens);

struct AnsweringOptions {
  GenerationOptions generation;                     // of max_tokens, one or more
  std::function<void(double share)> progress = {};  // may be empty
  std::function<bool()> is_cancelled = {};          // asked before every pass; may be empty
};

// By plain decoding, as many prompts side by side as the cache has room for. Answers of no token are
// left out. When cancelled, those that are complete. Throws Error: a prompt is empty, or does not fit
// into the cache with its answer. However it ends, the cache is as before.
std::vector<SearchText> answer_prompts(Executor& executor, const Vocabulary& vocabulary,
                                       const std::vector<std::vector<TokenId>>& prompts,
                                       const AnsweringOptions& options);

// Reads and commits text behind what the sequence has, in as many passes as it takes. Throws Error
// where it does not fit.
void read_all(Executor& executor, SequenceId sequence, std::span<const TokenId> text);

}  // namespace forerun
