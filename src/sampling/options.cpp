#include "sampling/options.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "sampling/stop.h"

namespace forerun {
namespace {

// A NaN fails every comparison, so each condition states what is allowed.
void require(bool allowed, const char* name, const char* expected, float value) {
  if (!allowed) fail(ErrorCode::kInvalidArgument, "{} must be {}, not {}", name, expected, value);
}

void require(bool allowed, const char* name, const char* expected, int value) {
  if (!allowed) fail(ErrorCode::kInvalidArgument, "{} must be {}, not {}", name, expected, value);
}

void require_in(int n_vocab, const char* name, TokenId token) {
  if (to_int(token) < n_vocab) return;
  fail(ErrorCode::kInvalidArgument, "{} names token {}, but this model's tokens are 0 to {}", name,
       to_int(token), n_vocab - 1);
}

}  // namespace

void validate(const SamplingOptions& options) {
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
    require(to_int(token) >= 0, "logit_bias", "of a token from 0 on", to_int(token));
    if (!(bias < std::numeric_limits<float>::infinity())) {
      fail(ErrorCode::kInvalidArgument,
           "logit_bias of token {} must be a finite number or -infinity, not {}", to_int(token), bias);
    }
  }
  if (o.n_logprobs) require(*o.n_logprobs >= 0, "n_logprobs", "0 or more", *o.n_logprobs);
}

void validate(const SamplingOptions& options, int n_vocab) {
  validate(options);
  for (const auto& [token, bias] : options.logit_bias) require_in(n_vocab, "logit_bias", token);
  if (options.n_logprobs.value_or(0) > n_vocab) {
    fail(ErrorCode::kInvalidArgument, "n_logprobs must be at most the vocabulary's size, {}, not {}",
         n_vocab, *options.n_logprobs);
  }
}

void validate(const GenerationOptions& options) {
  validate(options.sampling);
  require(options.max_tokens >= -1, "max_tokens (-n)", "-1 (no limit) or more", options.max_tokens);
  validate_stops(options.stop);
  for (const TokenId token : options.stop_tokens) {
    require(to_int(token) >= 0, "a stop token", "0 or more", to_int(token));
  }
}

void validate(const GenerationOptions& options, int n_vocab) {
  validate(options);
  validate(options.sampling, n_vocab);
  for (const TokenId token : options.stop_tokens) require_in(n_vocab, "stop_tokens", token);
}

}  // namespace forerun
