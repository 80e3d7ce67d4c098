// What an engine is made with.
#pragma once

#include <forerun/placement_options.h>
#include <forerun/speculation_options.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace forerun {

struct EngineOptions {
  std::string model = "smollm2";    // path of a GGUF file, or a name
  std::string device = "auto";      // "auto", "cpu", "cuda", "cuda:1"
  PlacementOptions placement = {};  // where layers go that are not all on it
  int n_threads = 0;                // CPU threads; 0: one per core
  bool pin_threads = true;          // bind each to a CPU, where the system allows it
  int n_parallel = 1;               // requests that are answered at once; the others wait
  int n_context = 0;  // tokens each may have; 0: what the model was trained for, at most 8192
  // Tokens whose keys and values are kept, of all requests together and of earlier texts, so that a
  // prompt that begins like one of these need not be read again. 0: n_parallel * n_context, or what
  // memory allows.
  int n_cells = 0;
  int max_rows = 512;  // tokens that one pass reads at most
  // Milliseconds that reading the prompts of others may take of a pass while a request gets its tokens.
  // 0: as long as it takes.
  int prompt_wait_ms = 0;
  std::string kv_type = "f16";  // of cached keys and values: "f16", "f32", "q8_0"
  // The text with speculation is exactly the text without, which it always is on CPUs and where our
  // kernels compute on GPUs. Others round differently with another number of rows. ggml's on GPUs: every
  // small pass is filled up to a fixed number and drafts are chains, for one request at a time;
  // docs/speculation.md has the price. libllama: nothing is drafted. Not set: yes on GPUs that ggml's
  // kernels serve, for one request at a time whose tokens are those of the model (`accept`), and else
  // no.
  std::optional<bool> exact = {};
  SpeculationOptions speculation = {};
  // Gets what is being done ("loading", "reading the prompt") and its share that is done. May be
  // empty. What it throws ends what is being done: making the engine, generate().
  std::function<void(std::string_view what, double share)> progress = {};
  // Gets what went wrong beside the requests (a datastore's disk is full, or another process
  // writes to it), as one line; from any thread. May be empty. What it throws is lost.
  std::function<void(std::string_view)> warn = {};
};

}  // namespace forerun
