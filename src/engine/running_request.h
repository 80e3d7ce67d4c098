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

#include "engine/text_embedding.h"
#include "request/prompt_state.h"
#include "request/request_view.h"
#include "sampling/logprobs.h"
#include "sampling/sampler.h"
#include "sampling/stop.h"
#include "text/token_streamer.h"
#include "text/vocabulary.h"

namespace forerun {

// Throws Error{kContextFull} that says what to do if a prompt of so many tokens does not fit into
// the context. `n_trained`: tokens of context that the model was trained for.
void check_prompt_fits(size_t n_prompt, int n_context, int n_trained);

class RunningRequest final : public RequestView {
 public:
  struct Limits {
    int n_vocab;
    int n_context;
    int n_trained;  // tokens of context that the model was trained for
  };
  // Throws Error: an empty prompt, one that does not fit into the context, options that
  // make no sense. The vocabulary outlives it.
  RunningRequest(Request request, const Vocabulary& vocabulary, const Limits& limits);

  // What drafters see (request_view.h), from begin() on.
  std::span<const TokenId> text() const override { return text_; }
  size_t n_prompt() const override { return n_prompt_; }
  int n_left() const override;  // INT_MAX without a limit
  bool ends_answer(TokenId token) const override { return reason_to_end(token).has_value(); }
  SequenceId sequence() const override { return run_.sequence; }
  std::span<const TokenId> known_answer() const override;  // where a benchmark knows it
  std::span<const TokenId> prediction() const override { return prediction_; }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return state_; }
  bool compares_distributions() const override { return run_.compares_distributions; }
  const PromptState* prompt_state() const override {
    return run_.wants_prompt_state ? &prompt_state_ : nullptr;
  }

  // How it runs.
  struct Run {
    SequenceId sequence{};  // of the cache
    bool compares_distributions = false;
    bool wants_prompt_state = false;
  };
  void begin(const Run& run) {
    run_ = run;
    if (answer().empty()) prompt_state_ = {};
    if (embedding_) embedding_->clear();
  }
  void add_prompt_state(std::span<const float> row) { prompt_state_.add(row); }
  // The vector that is wanted instead of an answer; nullptr: none.
  TextEmbedding* embedding() { return embedding_ ? &*embedding_ : nullptr; }
  const TextEmbedding* embedding() const { return embedding_ ? &*embedding_ : nullptr; }

  std::span<const TokenId> prompt() const { return std::span(text_).first(n_prompt_); }
  std::span<const TokenId> answer() const { return std::span(text_).subspan(n_prompt_); }

  bool is_cancelled() const { return is_cancelled_ && is_cancelled_(); }
  int priority() const { return priority_; }
  int max_draft() const { return max_draft_; }  // -1: no limit
  bool may_be_stored() const { return may_be_stored_; }
  bool may_reuse() const { return may_reuse_; }

  // What a request learns and counts while it runs, for whoever runs it.
  SpeculationStatistics& speculation() { return result_.speculation; }
  Timings& timings() { return result_.timings; }
  const Generation& result() const { return result_; }  // as far as it is known
  // What one pass drafted, for a benchmark that asks.
  void count_step(const DraftCounts& counts) {
    if (benchmark_ != nullptr) benchmark_->steps.push_back(counts);
  }

  // The answer grew by a token: `logits` are those it was chosen from. Why the answer ends here,
  // if it does; a token that ends the text is not part of it.
  std::optional<StopReason> take(TokenId token, const LogitsView& logits,
                                 std::optional<DraftSource> origin, LogprobScratch& scratch);

  // Why the answer would end where the model says this token; nullopt: it would not.
  std::optional<StopReason> reason_to_end(TokenId token) const;

  // Whether the best logits of a row mostly say all that is asked of it.
  bool best_logits_do() const;

  // Hands on what the answer got since the last time.
  void stream();
  // Says how much of the prompt is read.
  void tell_progress(size_t n_read, double ms) const;
  // The same, with what was held back. The request is over.
  Generation finish(StopReason reason);

 private:
  std::vector<TokenId> text_;
  size_t n_prompt_;
  std::shared_ptr<BenchmarkRecord> benchmark_;  // or null
  GenerationOptions options_;
  std::function<void(const Chunk&)> on_chunk_;
  std::function<void(const PromptProgress&)> on_progress_;
  std::function<bool()> is_cancelled_;
  std::vector<TokenId> prediction_;
  int priority_;
  int max_draft_;
  bool may_be_stored_;
  bool may_reuse_;
  const Vocabulary& vocabulary_;
  Sampler sampler_;
  SamplerState state_;
  StopMatcher stop_;
  TokenStreamer streamer_;
  Generation result_;
  // What was handed on of it.
  size_t n_text_streamed_ = 0;
  size_t n_tokens_streamed_ = 0;
  std::vector<size_t> chunk_ends_;
  SamplerScratch drawn_;  // for log-probabilities of draws
  Run run_;
  PromptState prompt_state_;  // of the rows that were read for it
  std::optional<TextEmbedding> embedding_;
};

}  // namespace forerun
