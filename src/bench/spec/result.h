// What `bench spec` measured, and what follows from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/spec/method.h"
#include "prompts/prompts.h"

namespace forerun {

struct Interval {
  double low = 0;
  double high = 0;
};

// How many times as fast, in decode time, and where 95 % of resampled sets of prompts lie.
struct SpeedRatio {
  double value = 0;
  Interval interval;
};

struct SpecSummary {
  int n_prompts = 0;
  int n_identical = 0;  // whose tokens are those of the text reference
  int64_t n_tokens = 0;
  double speedup = 0;         // over our plain decoding
  Interval speedup_interval;  // 95 %, over prompts
  double speedup_total = 0;   // the same with reading the prompts
  double tokens_per_second = 0;
  DraftCounts drafts;
  SpeculationStatistics speculation;
  double draft_share = 0, pass_share = 0, sample_share = 0;  // of the decode time; ours only
};

// Where a method's text parts from plain decoding's.
struct TextDifference {
  size_t method = 0;
  size_t prompt = 0;
  size_t token = 0;
  // By how much plain decoding's token is more probable than the method's, as the difference
  // of their log-probabilities: near 0, rounding decided. nullopt: not known (sampling, or a
  // text that ends there).
  std::optional<double> margin;
};

// The fastest of our methods against the fastest of llama-server's modes.
struct PeerComparison {
  size_t own = 0;
  size_t peer = 0;
  SpeedRatio speed;  // above 1: ours is faster
};

struct SpecBenchResult {
  std::string device, device_description, kernels;
  std::string placement;  // which layers are where; "": all on the device
  int n_threads = 0;
  int n_context = 0;
  std::string llama_version;  // of the llama-server that took part
  // Ours, plain decoding ("none") first; then llama-server's modes, its plain mode first.
  std::vector<std::string> methods;
  size_t n_peers = 0;  // how many of them are llama-server's
  std::vector<BenchPrompt> prompts;
  std::vector<std::vector<SpecRun>> runs;   // [method][prompt]
  std::vector<TextDifference> differences;  // of our methods
  std::vector<std::string> pieces;          // of the sample's tokens, see sample_prompt
  size_t sample_prompt = 0;                 // answered by the last method of ours

  size_t n_own() const { return methods.size() - n_peers; }
  bool is_peer(size_t method) const { return method >= n_own(); }
  // The method whose text a method should give: plain decoding of the same program.
  size_t text_reference(size_t method) const { return is_peer(method) ? n_own() : 0; }
  bool is_identical(size_t method, size_t prompt) const {
    return runs[method][prompt].tokens == runs[text_reference(method)][prompt].tokens;
  }

  // Of all prompts, or of those of one category.
  SpecSummary summary(size_t method, const std::optional<std::string>& category = std::nullopt) const;
  std::vector<std::string> categories() const;
  // nullopt: no llama-server took part, or nothing was measured.
  std::optional<PeerComparison> against_peers() const;
};

}  // namespace forerun
