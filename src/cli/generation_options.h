// Options about sampling and stopping, shared by the commands that generate text.
#pragma once

#include <forerun/generation_options.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace forerun {

struct GenerationFlags {
  GenerationOptions options;
  std::vector<std::string> logit_bias;  // "TOKEN=BIAS"
  std::vector<int> stop_tokens;
  int n_logprobs = -1;
  int64_t seed = -1;
};

void add_generation_options(CLI::App& command, GenerationFlags& flags);

// What the flags say, checked as far as that needs no model. Throws Error.
GenerationOptions generation_options(const GenerationFlags& flags);

}  // namespace forerun
