// What comes of a request.
#pragma once

#include <forerun/export.h>
#include <forerun/statistics.h>
#include <forerun/token.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

enum class StopReason {
  kEndOfText,    // the model ended it
  kLimit,        // max_tokens
  kStop,         // one of the stop texts or tokens
  kContextFull,  // no room for another token
  kCancelled,    // the caller said so
};

// A stable name for JSON: "eos", "limit", "word", "context", "cancelled".
FORERUN_API std::string_view to_string(StopReason reason);

struct Timings {
  int n_cached = 0;  // prompt tokens whose keys and values were still there
  int n_prompt = 0;  // prompt tokens read now
  double prompt_ms = 0;
  int n_predicted = 0;
  double predicted_ms = 0;  // after the first token, which comes with the prompt

  double prompt_per_second() const { return prompt_ms > 0 ? 1e3 * n_prompt / prompt_ms : 0; }
  // The first token costs no time of its own.
  int n_timed() const { return n_predicted > 0 ? n_predicted - 1 : 0; }
  double predicted_per_second() const { return predicted_ms > 0 ? 1e3 * n_timed() / predicted_ms : 0; }
};

struct TokenLogprob {
  TokenId token;
  float logprob;  // -infinity for a logit of -infinity or NaN
};

struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // the most probable first; of equal ones the lowest id
};

struct Generation {
  std::string text;
  std::vector<TokenId> tokens;                      // without the one that ended it
  std::vector<size_t> ends;                         // per token: where its text ends in `text`
  std::vector<std::optional<DraftSource>> origins;  // per token: where it had been drafted, if it was
  std::vector<TokenLogprobs> logprobs;              // per token, if asked for
  // If a vector was asked for instead of an answer: what comes out of the model's final norm, not
  // scaled; n_embd numbers, or as many for each token of the prompt (Pooling::kNone). Empty where the
  // request was cancelled.
  std::vector<float> embedding;
  StopReason stop_reason = StopReason::kEndOfText;
  std::string stopping_word;  // the stop text that ended it, if one did
  uint64_t seed = 0;          // the one that was used
  Timings timings;
  SpeculationStatistics speculation;
};

}  // namespace forerun
