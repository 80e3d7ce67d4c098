#include "tune/answer_timer.h"

#include <algorithm>

#include "core/error.h"
#include "engine/discard_guard.h"

namespace forerun {
namespace {

constexpr int kWarmUp = 4;

std::vector<SearchText> with_answers(std::vector<SearchText> texts) {
  std::erase_if(texts, [](const SearchText& text) {
    return text.n_prompt == 0 || text.n_prompt + 1 >= text.tokens.size();
  });
  if (texts.empty()) {
    fail(ErrorCode::kInvalidArgument, "there is no answer to measure with: use other prompts");
  }
  return texts;
}

}  // namespace

AnswerTimer::AnswerTimer(Executor& executor, const Vocabulary& vocabulary, std::vector<SearchText> texts,
                         SamplingOptions sampling)
    : texts_(with_answers(std::move(texts))),
      sampling_(std::move(sampling)),
      stepper_(executor, vocabulary,
               {.n_slots = static_cast<int>(texts_.size()), .n_context = n_context(texts_)}) {
  for (size_t text = 0; text < texts_.size(); ++text) answer(text, {});  // reads the prompts
}

int AnswerTimer::n_cells(const std::vector<SearchText>& texts) {
  return static_cast<int>(texts.size()) * n_context(texts);
}

int AnswerTimer::n_context(const std::vector<SearchText>& texts) {
  size_t n = 0;
  for (const SearchText& text : texts) n = std::max(n, text.tokens.size());
  return static_cast<int>(n) + kLargestTree + 1;
}

int AnswerTimer::n_timed(size_t text) const {
  return static_cast<int>(texts_[text].tokens.size() - texts_[text].n_prompt) - 1;
}

double AnswerTimer::answer(size_t text, const Speculation& speculation) {
  return answer(texts_[text], n_timed(text) + 1, speculation);
}

void AnswerTimer::warm_up(const Speculation& speculation) {
  answer(texts_.front(), kWarmUp, speculation);
}

double AnswerTimer::answer(const SearchText& text, int n_tokens, const Speculation& speculation) {
  Request request;
  request.prompt.assign(text.tokens.begin(),
                        text.tokens.begin() + static_cast<ptrdiff_t>(text.n_prompt));
  request.options = greedy_options(n_tokens);
  request.options.sampling = sampling_;
  request.options.ignore_eos = true;
  const RequestId id = stepper_.submit(std::move(request), speculation);
  const DiscardGuard guard(stepper_, id);
  for (;;) {
    if (auto result = stepper_.take(id)) {
      if (auto* error = std::get_if<std::exception_ptr>(&*result)) std::rethrow_exception(*error);
      return std::get<Generation>(*result).timings.predicted_ms;
    }
    stepper_.step();
  }
}

}  // namespace forerun
