#include "sampling/options.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace forerun {
namespace {

// A NaN fails every comparison, so each condition states what is allowed.
void require(bool allowed, const char* name, const char* expected, float value) {
  if (!allowed) fail(ErrorCode::kInvalidArgument, "{} must be {}, not {}", name, expected, value);
}

void require(bool allowed, const char* name, const char* expected, int value) {
  if (!allowed) fail(ErrorCode::kInvalidArgument, "{} must be {}, not {}", name, expected, value);
}

}  // namespace

void validate(const SamplingOptions& options, int n_vocab) {
  const auto& o = options;
  require(std::isfinite(o.temperature) && o.temperature >= 0, "temperature",
          "0 (greedy) or a positive number", o.temperature);
  require(o.top_k >= 0, "top_k", "0 (off) or a positive number", o.top_k);
  require(o.top_p > 0 && o.top_p <= 1, "top_p", "above 0 and at most 1 (off)", o.top_p);
  require(o.min_p >= 0 && o.min_p <= 1, "min_p", "between 0 (off) and 1", o.min_p);
  require(std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0, "repeat_penalty",
          "a positive number (1 = off)", o.repeat_penalty);
  require(o.repeat_last_n >= -1, "repeat_last_n",
          "-1 (the whole context), 0 (off) or a number of tokens", o.repeat_last_n);
  require(std::isfinite(o.presence_penalty), "presence_penalty", "a finite number", o.presence_penalty);
  require(std::isfinite(o.frequency_penalty), "frequency_penalty", "a finite number",
          o.frequency_penalty);
  for (const auto& [token, bias] : o.logit_bias) {
    if (to_int(token) < 0 || to_int(token) >= n_vocab) {
      fail(ErrorCode::kInvalidArgument, "logit_bias names token {}, but this model's tokens are 0 to {}",
           to_int(token), n_vocab - 1);
    }
    if (!(bias < std::numeric_limits<float>::infinity())) {
      fail(ErrorCode::kInvalidArgument,
           "logit_bias of token {} must be a finite number or -infinity, not {}", to_int(token), bias);
    }
  }
  if (o.n_logprobs && (*o.n_logprobs < 0 || *o.n_logprobs > n_vocab)) {
    fail(ErrorCode::kInvalidArgument,
         "n_logprobs must be between 0 and the vocabulary's size, {}, not {}", n_vocab, *o.n_logprobs);
  }
}

}  // namespace forerun
