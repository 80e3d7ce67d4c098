#include "engine/running_request.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
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
      on_text_(std::move(request.on_text)),
      is_cancelled_(std::move(request.is_cancelled)),
      vocabulary_(vocabulary),
      sampler_(effective_sampling(options_, vocabulary), limits.n_vocab),
      state_(sampler_.state_after(text_)),
      stop_(options_.stop, options_.stop_tokens),
      streamer_(vocabulary, {.at_text_start = false}) {
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

std::optional<StopReason> RunningRequest::take(TokenId token, std::span<const float> logits,
                                               std::optional<DraftSource> origin,
                                               LogprobScratch& scratch) {
  if (stop_.is_stop(token)) return StopReason::kStop;
  if (vocabulary_.is_end_of_generation(token) && !options_.ignore_eos) return StopReason::kEndOfText;
  if (const auto n_top = options_.sampling.n_logprobs) {
    result_.logprobs.push_back(token_logprobs(logits, token, *n_top, scratch));
  }
  text_.push_back(token);
  result_.origins.push_back(origin);
  state_.accept(token);
  emit(stop_.append(streamer_.push(token)));
  if (stop_.stopped()) return StopReason::kStop;
  if (n_left() == 0) return StopReason::kLimit;
  return std::nullopt;
}

Generation RunningRequest::finish(StopReason reason) {
  if (!stop_.stopped()) {
    emit(stop_.append(streamer_.flush()));
    emit(stop_.flush());
  }
  result_.tokens.assign(answer().begin(), answer().end());
  result_.stop_reason = reason;
  result_.timings.n_predicted = static_cast<int>(result_.tokens.size());
  return std::move(result_);
}

void RunningRequest::emit(std::string_view text) {
  result_.text += text;
  if (!text.empty() && on_text_) on_text_(text);
}

}  // namespace forerun
