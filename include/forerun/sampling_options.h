// What a request says about sampling, under the names clients know.
#pragma once

#include <forerun/token.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace forerun {

// The defaults are those of llama.cpp's programs, so that people who switch get the
// kind of text they are used to. Steps apply in the order bias, penalties,
// top-k, top-p, min-p, temperature, draw.
struct SamplingOptions {
  // Below 1 sharpens the distribution, above 1 flattens it; 0 always takes the most
  // probable token (greedy; of equal ones the one with the lowest id).
  float temperature = 0.8f;

  // Keep only the k most probable tokens; 0 = off.
  int top_k = 40;

  // Keep the smallest set of most probable tokens whose probabilities sum to at least
  // top_p; 1 = off.
  float top_p = 0.95f;

  // Keep tokens at least min_p times as probable as the most probable one; 0 = off.
  float min_p = 0.05f;

  // Divides a positive logit of a recently seen token by this and multiplies a
  // negative one; 1 = off.
  float repeat_penalty = 1.0f;

  // How many of the last tokens, the prompt's included, the three penalties look at;
  // -1 = the whole context, 0 = off.
  int repeat_last_n = 64;

  // Subtracted from the logit of every recently seen token; 0 = off.
  float presence_penalty = 0.0f;

  // Subtracted from a token's logit once per recent occurrence; 0 = off.
  float frequency_penalty = 0.0f;

  // Added to the model's logits; -infinity forbids a token. Several entries for one
  // token add up.
  std::vector<std::pair<TokenId, float>> logit_bias;

  // The same seed, prompt and options give the same text. Absent: the sampler takes
  // one from the operating system and says which (Sampler::seed).
  std::optional<uint64_t> seed;

  // Report log-probabilities: of the chosen token and of this many of the most
  // probable ones. Absent: report none.
  std::optional<int> n_logprobs;

  // These are then of the distribution that tokens are drawn from, not of the model's own.
  bool logprobs_of_draws = false;

  // Whether the penalties change any logit.
  bool has_penalties() const {
    return repeat_last_n != 0 &&
           (repeat_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f);
  }
};

}  // namespace forerun
