#include "engine/generator.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/check.h"
#include "core/error.h"
#include "sampling/stop.h"
#include "text/token_streamer.h"

namespace forerun {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
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

Generator::Generator(Executor& executor, const Vocabulary& vocabulary)
    : executor_(executor), vocabulary_(vocabulary), sequence_(executor.cells().create()) {
  committed_.reserve(static_cast<size_t>(executor.cells().n_cells()));
}

void Generator::save(const std::filesystem::path& path) const {
  executor_.cache().save(sequence_, committed_, executor_.model().fingerprint(), path);
}

void Generator::restore(const std::filesystem::path& path) {
  auto restored = executor_.cache().restore(path, executor_.model().fingerprint());
  if (!restored) return;
  executor_.cells().remove(sequence_);
  sequence_ = restored->sequence;
  committed_.assign(restored->tokens.begin(), restored->tokens.end());
}

int Generator::reuse(std::span<const TokenId> prompt) {
  const auto differs = std::mismatch(prompt.begin(), prompt.end(), committed_.begin(), committed_.end());
  // The last token of the prompt is read in any case: its logits are wanted.
  const auto n_shared =
      std::min<size_t>(static_cast<size_t>(differs.first - prompt.begin()), prompt.size() - 1);
  executor_.cells().truncate(sequence_, static_cast<int>(n_shared));
  committed_.resize(n_shared);
  return static_cast<int>(n_shared);
}

std::optional<std::span<const float>> Generator::read_prompt(std::span<const TokenId> tokens,
                                                             const std::function<bool()>& is_cancelled) {
  std::optional<std::span<const float>> logits;
  while (!tokens.empty()) {
    if (is_cancelled && is_cancelled()) return std::nullopt;
    // Passes end on a fixed grid of positions, so that a prompt is computed the same
    // way however much of it was there already.
    const auto max_rows = static_cast<size_t>(executor_.max_rows());
    const auto part = tokens.first(std::min(tokens.size(), max_rows - committed_.size() % max_rows));
    logits = executor_.read(sequence_, part);
    CHECK(logits.has_value());
    committed_.insert(committed_.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
  }
  return logits;
}

std::optional<std::span<const float>> Generator::step(TokenId token) {
  const auto logits = executor_.read(sequence_, {&token, 1});
  if (logits) committed_.push_back(token);
  return logits;
}

Generation Generator::generate(std::span<const TokenId> prompt, const GenerationOptions& options,
                               const Callbacks& callbacks) {
  if (prompt.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  if (options.max_tokens < -1) {
    fail(ErrorCode::kInvalidArgument, "the number of tokens must be -1 (no limit) or more");
  }
  const Sampler sampler(effective_sampling(options, vocabulary_), executor_.model().config().n_vocab);
  StopMatcher stop(options.stop, options.stop_tokens);
  TokenStreamer streamer(vocabulary_, {.at_text_start = false});
  const int n_context = executor_.cells().n_cells();
  if (prompt.size() > static_cast<size_t>(n_context)) {
    fail(ErrorCode::kContextFull,
         "the prompt has {} tokens but the context holds {}: use a larger one (-c {}) or a shorter "
         "prompt",
         prompt.size(), n_context, prompt.size() + 256);
  }

  Generation result;
  result.seed = sampler.seed();
  result.timings.n_cached = reuse(prompt);
  result.timings.n_prompt = static_cast<int>(prompt.size()) - result.timings.n_cached;
  const auto prompt_start = Clock::now();
  auto logits =
      read_prompt(prompt.subspan(static_cast<size_t>(result.timings.n_cached)), callbacks.is_cancelled);
  result.timings.prompt_ms = ms_since(prompt_start);

  const auto emit = [&](std::string_view text) {
    result.text += text;
    if (!text.empty() && callbacks.on_text) callbacks.on_text(text);
  };
  SamplerState state = sampler.state_after(prompt);
  const auto predict_start = Clock::now();
  // Why the text ends here, if it does.
  const auto reason_to_stop = [&]() -> std::optional<StopReason> {
    if (!logits || (callbacks.is_cancelled && callbacks.is_cancelled())) return StopReason::kCancelled;
    if (options.max_tokens >= 0 && static_cast<int>(result.tokens.size()) >= options.max_tokens) {
      return StopReason::kLimit;
    }
    const Position position{static_cast<int32_t>(prompt.size() + result.tokens.size())};
    const TokenId token = sampler.sample(*logits, state, position, sampler_scratch_);
    if (stop.is_stop(token)) return StopReason::kStop;
    if (vocabulary_.is_end_of_generation(token) && !options.ignore_eos) return StopReason::kEndOfText;
    if (options.sampling.n_logprobs) {
      result.logprobs.push_back(
          token_logprobs(*logits, token, *options.sampling.n_logprobs, logprob_scratch_));
    }
    result.tokens.push_back(token);
    state.accept(token);
    emit(stop.append(streamer.push(token)));
    if (stop.stopped()) return StopReason::kStop;
    if (static_cast<int>(result.tokens.size()) == options.max_tokens) return StopReason::kLimit;
    logits = step(token);
    return logits ? std::nullopt : std::optional(StopReason::kContextFull);
  };
  std::optional<StopReason> reason;
  while (!reason) reason = reason_to_stop();
  result.stop_reason = *reason;
  if (!stop.stopped()) {
    emit(stop.append(streamer.flush()));
    emit(stop.flush());
  }
  result.timings.n_predicted = static_cast<int>(result.tokens.size());
  result.timings.predicted_ms = ms_since(predict_start);
  return result;
}

}  // namespace forerun
