// What starting an engine costs: time to the first token and peak memory, measured
// in a process of its own.
#pragma once

#include <string>

#include "bench/engine/contender.h"

namespace forerun {

struct StartCost {
  double first_token_ms = 0;
  double peak_bytes = 0;
};

// In this process: load, read a short prompt, have logits. `engine` is "forerun" or
// "libllama".
StartCost measure_start(const std::string& engine, const ContenderOptions& options);

// The same in a child process that runs this program's hidden `bench start` command.
StartCost measure_start_in_child(const std::string& engine, const ContenderOptions& options);

}  // namespace forerun
