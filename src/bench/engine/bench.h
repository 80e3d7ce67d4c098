// forerun against libllama, measured side by side: decoding, reading a prompt, a pass
// over few tokens, starting.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/engine/contender.h"
#include "bench/engine/start_cost.h"

namespace forerun {

struct EngineBenchOptions {
  ContenderOptions contender;
  int context = 256;  // tokens before what is timed
  int prompt = 512;   // tokens of the prompt that is read
  int decode = 32;    // tokens decoded per round
  int rounds = 11;    // of which the median counts; the two engines take turns
  int starts = 5;     // child processes of each engine
};

// Medians, in milliseconds or bytes.
struct Comparison {
  double forerun = 0;
  double libllama = 0;
  // Above 1: forerun is better.
  double ratio() const { return forerun > 0 ? libllama / forerun : 0; }
};

struct RowsResult {
  int n = 0;
  Comparison ms;
};

struct EngineBenchResult {
  std::string device;
  std::string kernels;  // ours that compute; empty: ggml's do
  int n_threads = 0;
  Comparison decode_ms;   // per token
  Comparison prefill_ms;  // of the whole prompt
  // Not measured without starts.
  std::optional<Comparison> start_ms;
  std::optional<Comparison> peak_bytes;
  std::vector<RowsResult> rows;
};

// `note` is told what is being measured. Throws Error.
EngineBenchResult run_engine_bench(const EngineBenchOptions& options,
                                   const std::function<void(const std::string&)>& note);

}  // namespace forerun
