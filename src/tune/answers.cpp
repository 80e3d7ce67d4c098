#include "tune/answers.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "engine/stepper.h"

namespace forerun {
namespace {

struct Answer {
  RequestId id;
  SearchText text;
  int n_written = 0;
  bool is_over = false;
};

// Slots for the longest prompt and its answer, as many as are of use and have room.
StepperOptions slots_for(const std::vector<std::vector<TokenId>>& prompts, size_t n_tokens,
                         Executor& executor) {
  size_t n_context = n_tokens;
  for (const auto& prompt : prompts) n_context = std::max(n_context, prompt.size() + n_tokens);
  const auto n_free = static_cast<size_t>(executor.cells().n_free());
  if (n_context > n_free) {
    fail(ErrorCode::kContextFull,
         "a prompt and its answer may have {} tokens but the context holds {}: use shorter prompts, or "
         "fewer tokens of answers",
         n_context, n_free);
  }
  const size_t n_most = std::min(n_free / n_context, static_cast<size_t>(executor.max_rows()));
  return {.n_slots = static_cast<int>(std::clamp(prompts.size(), size_t{1}, n_most)),
          .n_context = static_cast<int>(n_context)};
}

// After a pass: the share of the answer that is there, its prompt as much as a token.
double take_share(Stepper& stepper, int n_tokens, Answer& answer) {
  if (answer.is_over) return 1;
  if (auto result = stepper.take(answer.id)) {
    if (auto* error = std::get_if<std::exception_ptr>(&*result)) std::rethrow_exception(*error);
    const std::vector<TokenId>& tokens = std::get<Generation>(*result).tokens;
    answer.text.tokens.insert(answer.text.tokens.end(), tokens.begin(), tokens.end());
    answer.is_over = true;
    return 1;
  }
  const double read = stepper.share_read(answer.id);
  if (read == 1) ++answer.n_written;
  return (read + answer.n_written) / (1 + n_tokens);
}

}  // namespace

GenerationOptions greedy_options(int max_tokens) {
  GenerationOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = max_tokens;
  return options;
}

std::vector<SearchText> answer_prompts(Executor& executor, const Vocabulary& vocabulary,
                                       const std::vector<std::vector<TokenId>>& prompts,
                                       const AnsweringOptions& options) {
  const int n_tokens = options.generation.max_tokens;
  CHECK(n_tokens >= 1);
  Stepper stepper(executor, vocabulary, slots_for(prompts, static_cast<size_t>(n_tokens), executor));
  std::vector<Answer> answers;
  for (const auto& prompt : prompts) {
    answers.push_back({.id = stepper.submit({.prompt = prompt, .options = options.generation}),
                       .text = {.tokens = prompt, .n_prompt = prompt.size()}});
  }
  const auto n_all = static_cast<double>(prompts.size());
  double n_done = 0;  // answers, and shares of them
  while (n_done < n_all) {
    if (options.is_cancelled && options.is_cancelled()) break;
    stepper.step();
    n_done = 0;
    for (Answer& answer : answers) n_done += take_share(stepper, n_tokens, answer);
    if (options.progress) options.progress(n_done / n_all);
  }
  std::vector<SearchText> texts;
  for (Answer& answer : answers) {
    if (answer.text.tokens.size() > answer.text.n_prompt) texts.push_back(std::move(answer.text));
  }
  return texts;
}

void read_all(Executor& executor, SequenceId sequence, std::span<const TokenId> text) {
  const auto max_rows = static_cast<size_t>(executor.max_rows());
  for (size_t begin = 0; begin < text.size(); begin += max_rows) {
    const size_t n = std::min(max_rows, text.size() - begin);
    if (!executor.read(sequence, text.subspan(begin, n))) {
      fail(ErrorCode::kInvalidArgument,
           "the texts to search on do not fit into the context: use fewer or shorter ones");
    }
  }
}

}  // namespace forerun
