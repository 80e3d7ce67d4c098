// Compares drafting methods on the same prompts: how much faster, and whether the text is
// the same.
//
// All methods of ours share one model and one cache; each mode of llama-server has a process
// of its own, which sleeps while others answer. All take turns prompt by prompt, so that
// whatever else the machine does hits all alike.
#pragma once

#include <forerun/engine.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/spec/result.h"
#include "prompts/prompts.h"

namespace forerun {

// llama.cpp's server, to be compared with.
struct LlamaServerChoice {
  std::string program;             // empty: none
  std::vector<std::string> modes;  // empty: plain decoding and all its n-gram modes
  int wait_s = 300;                // how long each may take to load
};

struct SpecBenchOptions {
  EngineOptions engine;  // speculation.method is each of `methods` in turn
  // "swift", "swift:search=published:share=1"; a value is written as in quoted_text.h.
  std::vector<std::string> methods;
  LlamaServerChoice llama_server;
  std::vector<BenchPrompt> prompts;
  PromptOrigin prompt_origin;  // for the report
  GenerationOptions generation;
  int batch = 1;  // prompts that are answered at once
  // A live datastore for each method, in a folder of its own below this one. Empty: none.
  std::filesystem::path live_folder;
  bool reports_steps = false;  // each step's counts, of every answer
};

struct SpecProgress {
  int n_done;
  int n_all;
  double seconds_left;
};

// Plain decoding ("none") is always among the methods, first. Throws Error; where a prompt does not
// fit into the context, it names the prompt's place in its file.
SpecBenchResult run_spec_bench(const SpecBenchOptions& options,
                               const std::function<void(const SpecProgress&)>& progress);

}  // namespace forerun
