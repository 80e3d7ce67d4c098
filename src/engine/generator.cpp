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
    case StopReason::kStopString: return "word";
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
  if (n_shared < committed_.size()) {
    const SequenceId shared = executor_.cells().fork(sequence_, static_cast<int>(n_shared));
    executor_.cells().remove(sequence_);
    sequence_ = shared;
    committed_.resize(n_shared);
  }
  return static_cast<int>(n_shared);
}

std::span<const float> Generator::read(std::span<const TokenId> tokens) {
  std::span<const float> logits;
  while (!tokens.empty()) {
    // Passes end on a fixed grid of positions, so that a prompt is computed the same
    // way however much of it was there already.
    const auto max_rows = static_cast<size_t>(executor_.max_rows());
    const size_t n = std::min(tokens.size(), max_rows - committed_.size() % max_rows);
    pass_.rows.clear();
    path_.clear();
    std::optional<NodeId> parent;
    for (size_t i = 0; i < n; ++i) {
      parent = executor_.cells().extend(sequence_, parent);
      CHECK(parent.has_value());
      pass_.rows.push_back({.sequence = sequence_,
                            .node = *parent,
                            .token = tokens[i],
                            .logits = i + 1 == tokens.size()});
      path_.push_back(*parent);
    }
    const PassResult& result = executor_.forward(pass_);
    executor_.cells().commit(sequence_, path_);
    committed_.insert(committed_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
    if (n == tokens.size()) logits = result.logits(n - 1);
    tokens = tokens.subspan(n);
  }
  return logits;
}

std::optional<std::span<const float>> Generator::step(TokenId token) {
  if (executor_.cells().n_free() == 0) return std::nullopt;
  return read({&token, 1});
}

Generation Generator::generate(std::span<const TokenId> prompt, const GenerationOptions& options,
                               const OnText& on_text) {
  const int n_context = executor_.cells().n_cells();
  if (prompt.empty()) fail(ErrorCode::kInvalidArgument, "the prompt is empty");
  if (static_cast<int>(prompt.size()) > n_context) {
    fail(ErrorCode::kContextFull,
         "the prompt has {} tokens but the context holds {}: use a larger one (-c {}) or a shorter "
         "prompt",
         prompt.size(), n_context, prompt.size() + 256);
  }
  if (options.max_tokens < -1)
    fail(ErrorCode::kInvalidArgument, "the number of tokens must be -1 (no limit) or more");
  const Sampler sampler(effective_sampling(options, vocabulary_), executor_.model().config().n_vocab);
  StopMatcher stop(options.stop, options.stop_tokens);
  TokenStreamer streamer(vocabulary_, {.at_text_start = false});

  Generation result;
  result.seed = sampler.seed();
  result.timings.n_cached = reuse(prompt);
  result.timings.n_prompt = static_cast<int>(prompt.size()) - result.timings.n_cached;
  const auto prompt_start = Clock::now();
  std::span<const float> logits = read(prompt.subspan(static_cast<size_t>(result.timings.n_cached)));
  result.timings.prompt_ms = ms_since(prompt_start);

  SamplerState state = sampler.state_after(prompt);
  bool go_on = true;
  const auto emit = [&](std::string_view text) {
    if (text.empty()) return;
    result.text += text;
    if (go_on && on_text) go_on = on_text(text);
  };
  const auto predict_start = Clock::now();
  for (;;) {
    if (options.max_tokens >= 0 && static_cast<int>(result.tokens.size()) >= options.max_tokens) {
      result.stop_reason = StopReason::kLimit;
      break;
    }
    const TokenId token = sampler.sample(
        logits, state, Position{static_cast<int32_t>(committed_.size())}, sampler_scratch_);
    if (stop.is_stop(token)) {
      result.stop_reason = StopReason::kStopString;
      break;
    }
    if (vocabulary_.is_end_of_generation(token) && !options.ignore_eos) {
      result.stop_reason = StopReason::kEndOfText;
      break;
    }
    if (options.sampling.n_logprobs) {
      result.logprobs.push_back(
          token_logprobs(logits, token, *options.sampling.n_logprobs, logprob_scratch_));
    }
    result.tokens.push_back(token);
    state.accept(token);
    emit(stop.append(streamer.push(token)));
    if (stop.stopped()) {
      result.stop_reason = StopReason::kStopString;
      break;
    }
    if (!go_on) {
      result.stop_reason = StopReason::kCancelled;
      break;
    }
    const auto next = step(token);
    if (!next) {
      result.stop_reason = StopReason::kContextFull;
      break;
    }
    logits = *next;
  }
  if (!stop.stopped()) {
    emit(stop.append(streamer.flush()));
    emit(stop.flush());
  }
  result.timings.n_predicted = static_cast<int>(result.tokens.size());
  result.timings.predicted_ms = ms_since(predict_start);
  return result;
}

}  // namespace forerun
