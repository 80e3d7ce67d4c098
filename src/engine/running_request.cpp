#include "engine/running_request.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "grammar/grammar.h"
#include "sampling/logprobs.h"
#include "sampling/options.h"

namespace forerun {
namespace {

void check(std::span<const TokenId> prompt, const GenerationOptions& options,
           const RunningRequest::Limits& limits) {
  if (prompt.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  for (const TokenId token : prompt) {
    if (to_int(token) < 0 || to_int(token) >= limits.n_vocab) {
      fail(ErrorCode::kInvalidArgument, "the prompt has token {}, but the vocabulary has 0 to {}",
           to_int(token), limits.n_vocab - 1);
    }
  }
  validate(options, limits.n_vocab);
  check_prompt_fits(prompt.size(), limits.n_context, limits.n_trained);
}

// The sampling options, with the tokens that end a text forbidden if they are to be ignored.
SamplingOptions effective_sampling(const GenerationOptions& options, const Vocabulary& vocabulary) {
  SamplingOptions sampling = options.sampling;
  if (!options.ignore_eos) return sampling;
  for (int32_t id = 0; id < static_cast<int32_t>(vocabulary.n_tokens()); ++id) {
    if (!vocabulary.is_end_of_generation(TokenId{id})) continue;
    sampling.logit_bias.emplace_back(TokenId{id}, -std::numeric_limits<float>::infinity());
  }
  return sampling;
}

}  // namespace

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText: return "eos";
    case StopReason::kLimit: return "limit";
    case StopReason::kStop: return "word";
    case StopReason::kContextFull: return "context";
    case StopReason::kCancelled: return "cancelled";
  }
  return "";
}

void check_prompt_fits(size_t n_prompt, int n_context, int n_trained) {
  if (n_prompt <= static_cast<size_t>(n_context)) return;
  // With room for an answer, where the model can do that.
  const auto wanted = static_cast<int64_t>(n_prompt) + 256;
  const int64_t larger = std::min<int64_t>(wanted, n_trained);
  const bool helps = larger > static_cast<int64_t>(n_prompt);
  fail(ErrorCode::kContextFull,
       "the prompt has {} tokens but the context holds {}: use {}a shorter prompt", n_prompt, n_context,
       helps ? fmt::format("a larger one (-c {}) or ", larger) : "");
}

RunningRequest::RunningRequest(Request request, const Vocabulary& vocabulary, const Limits& limits)
    : text_((check(request.prompt, request.options, limits), std::move(request.prompt))),
      n_prompt_(text_.size()),
      benchmark_(std::move(request.benchmark)),
      options_(std::move(request.options)),
      on_chunk_(std::move(request.on_chunk)),
      on_progress_(std::move(request.on_progress)),
      is_cancelled_(std::move(request.is_cancelled)),
      prediction_(std::move(request.prediction)),
      priority_(request.priority),
      max_draft_(request.max_draft),
      may_be_stored_(request.may_be_stored),
      may_reuse_(request.may_reuse),
      vocabulary_(vocabulary),
      sampler_(effective_sampling(options_, vocabulary), limits.n_vocab),
      state_(sampler_.state_after(text_)),
      stop_(options_.stop, options_.stop_tokens),
      streamer_(vocabulary, {.at_text_start = false}) {
  if (request.embedding) {
    // Nothing is drafted for it or learnt from it, and all of it is read.
    embedding_.emplace(*request.embedding, n_prompt_);
    options_.max_tokens = 0;
    max_draft_ = 0;
    may_be_stored_ = false;
    may_reuse_ = false;
  }
  if (!options_.grammar.text.empty()) state_.constrain(start_of(options_.grammar, vocabulary));
  result_.seed = sampler_.seed();
  if (benchmark_ != nullptr) benchmark_->steps.clear();
}

std::span<const TokenId> RunningRequest::known_answer() const {
  if (benchmark_ == nullptr || !benchmark_->known_answer) return {};
  return *benchmark_->known_answer;
}

int RunningRequest::n_left() const {
  if (options_.max_tokens < 0) return std::numeric_limits<int>::max();
  return options_.max_tokens - static_cast<int>(answer().size());
}

bool RunningRequest::best_logits_do() const {
  const bool reports_all = options_.sampling.n_logprobs && !options_.sampling.logprobs_of_draws;
  return sampler_.draws_from_best(state_) && !reports_all;
}

std::optional<StopReason> RunningRequest::reason_to_end(TokenId token) const {
  if (stop_.is_stop(token)) return StopReason::kStop;
  if (vocabulary_.is_end_of_generation(token) && !options_.ignore_eos) return StopReason::kEndOfText;
  return std::nullopt;
}

std::optional<StopReason> RunningRequest::take(TokenId token, const LogitsView& logits,
                                               std::optional<DraftSource> origin,
                                               LogprobScratch& scratch) {
  if (const auto reason = reason_to_end(token)) return reason;
  if (const auto n_top = options_.sampling.n_logprobs) {
    result_.logprobs.push_back(
        options_.sampling.logprobs_of_draws
            ? drawn_logprobs(sampler_.distribution(logits, state_, drawn_), token, *n_top)
            : token_logprobs(logits.all(), token, *n_top, scratch));
  }
  text_.push_back(token);
  result_.origins.push_back(origin);
  state_.accept(token);
  const bool is_visible =
      std::ranges::find(options_.visible_tokens, token) != options_.visible_tokens.end();
  result_.text += stop_.append(
      streamer_.push(token, is_visible ? ControlTokens::kRendered : ControlTokens::kHidden));
  result_.ends.push_back(result_.text.size());
  if (stop_.stopped()) return StopReason::kStop;
  if (n_left() == 0) return StopReason::kLimit;
  return std::nullopt;
}

void RunningRequest::stream() {
  const auto tokens = answer().subspan(n_tokens_streamed_);
  const std::string_view text = std::string_view(result_.text).substr(n_text_streamed_);
  const bool has_more = !tokens.empty() || !text.empty();
  const auto since = [&](const auto& all) {
    return std::span(all).subspan(std::min(n_tokens_streamed_, all.size()));
  };
  chunk_ends_.clear();
  for (const size_t end : since(result_.ends)) chunk_ends_.push_back(end - n_text_streamed_);
  const Chunk chunk{.text = text,
                    .tokens = tokens,
                    .ends = chunk_ends_,
                    .origins = since(result_.origins),
                    .logprobs = since(result_.logprobs),
                    .timings = result_.timings,
                    .speculation = result_.speculation};
  n_tokens_streamed_ += tokens.size();
  n_text_streamed_ += text.size();
  if (has_more && on_chunk_) on_chunk_(chunk);
}

void RunningRequest::tell_progress(size_t n_read, double ms) const {
  if (!on_progress_) return;
  on_progress_({.n_prompt = static_cast<int>(n_prompt_),
                .n_cached = result_.timings.n_cached,
                .n_read = static_cast<int>(n_read),
                .ms = ms});
}

Generation RunningRequest::finish(StopReason reason) {
  if (!stop_.stopped()) {
    result_.text += stop_.append(streamer_.flush());
    result_.text += stop_.flush();
    if (!result_.ends.empty()) result_.ends.back() = result_.text.size();
  }
  stream();
  result_.tokens.assign(answer().begin(), answer().end());
  if (embedding_ && reason != StopReason::kCancelled) result_.embedding = embedding_->result();
  result_.stop_reason = reason;
  result_.stopping_word = stop_.stopping_string();
  result_.timings.n_predicted = static_cast<int>(result_.tokens.size());
  return std::move(result_);
}

}  // namespace forerun
