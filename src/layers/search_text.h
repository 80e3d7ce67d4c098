// Texts that layers are searched on: prompts, and what the model itself answered.
#pragma once

#include <functional>
#include <vector>

#include "core/ids.h"
#include "model/executor.h"

namespace forerun {

struct SearchText {
  std::vector<TokenId> tokens;  // the prompt, then the answer
  size_t n_prompt = 0;
};

struct AnswerOptions {
  int n_tokens = 64;  // of an answer at most
  // Whether a token ends the answer; it is no part of it. Empty: none does.
  std::function<bool(TokenId)> is_end = {};
  // Gets the share that is done. May be empty.
  std::function<void(double)> progress = {};
  // Asked now and then; true: the answers end where they are. May be empty.
  std::function<bool()> is_cancelled = {};
};

// Answers the prompts greedily by plain decoding, all of them side by side. Prompts whose answer
// is empty are left out. The executor's cache is as before afterwards. Throws Error when a
// prompt is empty, and when prompts and answers do not fit into the cache together.
std::vector<SearchText> write_answers(Executor& executor,
                                      const std::vector<std::vector<TokenId>>& prompts,
                                      const AnswerOptions& options = {});

// Reads and commits text behind what the sequence has, in as many passes as it takes; the logits
// behind the last token, valid until the next pass. Throws Error where it does not fit.
std::span<const float> read_all(Executor& executor, SequenceId sequence, std::span<const TokenId> text);

}  // namespace forerun
