// Log-probabilities to report with a token, as OpenAI's API does: the log-softmax of the
// model's own logits, before bias, penalties, temperature and truncation.
#pragma once

#include <forerun/generation.h>

#include <span>
#include <vector>

#include "core/ids.h"
#include "sampling/sampler.h"
#include "sampling/vocab_ops.h"

namespace forerun {

// Buffers of one thread, reused between calls.
struct LogprobScratch {
  std::vector<float> logits;
  std::vector<ScoredToken> best;
  SelectionScratch selection;
};

// The log-probability of `chosen`, a token of the vocabulary, and of the `n_top` most
// probable tokens (fewer if fewer are possible at all).
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, int n_top,
                             LogprobScratch& scratch);

// The same of the distribution that `chosen` was drawn from.
TokenLogprobs drawn_logprobs(const Distribution& distribution, TokenId chosen, int n_top);

}  // namespace forerun
