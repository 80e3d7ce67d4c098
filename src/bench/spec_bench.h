// Compares drafting methods on the same prompts: how much faster, and whether the text is
// the same.
//
// All methods share one model and one cache, and take turns prompt by prompt, so that
// whatever else the machine does hits all alike.
#pragma once

#include <forerun/engine.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/prompts.h"

namespace forerun {

struct SpecBenchOptions {
  EngineOptions engine;  // speculation.method is each of `methods` in turn
  std::vector<std::string> methods;
  std::vector<BenchPrompt> prompts;
  GenerationOptions generation;
  int batch = 1;  // prompts that are answered at once
  // A live datastore for each method, in a folder of its own below this one. Empty: none.
  std::filesystem::path live_folder;
};

// One method's answers to one prompt, all turns together.
struct SpecRun {
  std::vector<TokenId> tokens;
  std::vector<std::optional<DraftSource>> origins;
  double prompt_ms = 0;  // of the whole batch, shared equally
  double decode_ms = 0;
  SpeculationStatistics speculation;
};

struct Interval {
  double low = 0;
  double high = 0;
};

struct SpecSummary {
  int n_prompts = 0;
  int n_identical = 0;  // whose tokens are those of plain decoding
  int64_t n_tokens = 0;
  double speedup = 0;         // plain decoding's decode time over this method's
  Interval speedup_interval;  // 95 %, over prompts
  double speedup_total = 0;   // the same with reading the prompts
  double tokens_per_second = 0;
  SpeculationStatistics speculation;
  double draft_share = 0, pass_share = 0, sample_share = 0;  // of the decode time
};

struct SpecBenchResult {
  std::string device, device_description, kernels;
  int n_threads = 0;
  std::vector<std::string> methods;
  std::vector<BenchPrompt> prompts;
  std::vector<std::vector<SpecRun>> runs;  // [method][prompt]
  std::vector<std::string> pieces;         // of the sample's tokens, see sample_prompt
  size_t sample_prompt = 0;

  // Of all prompts, or of those of one category.
  SpecSummary summary(size_t method, const std::optional<std::string>& category = std::nullopt) const;
  std::vector<std::string> categories() const;
};

struct SpecProgress {
  int n_done;
  int n_all;
  double seconds_left;
};

// Plain decoding ("none") is always among the methods, first. Throws Error.
SpecBenchResult run_spec_bench(const SpecBenchOptions& options,
                               const std::function<void(const SpecProgress&)>& progress);

}  // namespace forerun
