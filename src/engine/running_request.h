// One request while it is answered: its text so far, how its tokens are chosen, and what
// ends it.
//
// Not thread-safe.
#pragma once

#include <forerun/benchmark.h>
#include <forerun/generation.h>
#include <forerun/request.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sampling/logprobs.h"
#include "sampling/sampler.h"
#include "sampling/stop.h"
#include "text/token_streamer.h"
#include "text/vocabulary.h"

namespace forerun {

class RunningRequest {
 public:
  struct Limits {
    int n_vocab;
    int n_context;
    int n_trained;  // tokens of context that the model was trained for
  };
  // Throws Error: an empty prompt, one that does not fit into the context, options that
  // make no sense. The vocabulary outlives it.
  RunningRequest(Request request, const Vocabulary& vocabulary, const Limits& limits);

  // The prompt and the answer so far.
  std::span<const TokenId> text() const { return text_; }
  std::span<const TokenId> prompt() const { return std::span(text_).first(n_prompt_); }
  std::span<const TokenId> answer() const { return std::span(text_).subspan(n_prompt_); }

  // The answer, where a benchmark knows it; else empty.
  std::span<const TokenId> known_answer() const;

  const Sampler& sampler() const { return sampler_; }
  const SamplerState& state() const { return state_; }  // after the text
  bool is_cancelled() const { return is_cancelled_ && is_cancelled_(); }
  // How many tokens it may still get; INT_MAX without a limit.
  int n_left() const;

  // What a request learns and counts while it runs, for whoever runs it.
  SpeculationStatistics& speculation() { return result_.speculation; }
  Timings& timings() { return result_.timings; }
  // What one pass drafted, for a benchmark that asks.
  void count_step(const DraftCounts& counts) {
    if (benchmark_ != nullptr) benchmark_->steps.push_back(counts);
  }

  // The answer grew by a token: `logits` are those it was chosen from. Streams text. Why
  // the answer ends here, if it does; a token that ends the text is not part of it.
  std::optional<StopReason> take(TokenId token, std::span<const float> logits,
                                 std::optional<DraftSource> origin, LogprobScratch& scratch);

  // Streams what was held back. The request is over.
  Generation finish(StopReason reason);

 private:
  void emit(std::string_view text);

  std::vector<TokenId> text_;
  size_t n_prompt_;
  std::shared_ptr<BenchmarkRecord> benchmark_;  // or null
  GenerationOptions options_;
  std::function<void(std::string_view)> on_text_;
  std::function<bool()> is_cancelled_;
  const Vocabulary& vocabulary_;
  Sampler sampler_;
  SamplerState state_;
  StopMatcher stop_;
  TokenStreamer streamer_;
  Generation result_;
};

}  // namespace forerun
