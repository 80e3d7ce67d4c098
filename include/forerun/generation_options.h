// How an answer is written, and what ends it.
#pragma once

#include <forerun/sampling_options.h>
#include <forerun/token.h>

#include <string>
#include <vector>

namespace forerun {

struct GenerationOptions {
  SamplingOptions sampling;
  int max_tokens = -1;               // -1: until the model ends the text or the context is full
  std::vector<std::string> stop;     // texts that end the answer; they are not part of it
  std::vector<TokenId> stop_tokens;  // the same for tokens
  bool ignore_eos = false;           // never let the model end the text
};

}  // namespace forerun
