#include "engine/measured_speed.h"

#include <algorithm>

#include "core/error.h"

namespace forerun {
namespace {

// No draft is longer, siblings included.
constexpr int kLargestTree = 128;
// Candidates between two measurements of plain decoding.
constexpr int kPlainEvery = 8;
// Tokens before what is measured: a candidate's first passes build its graphs.
constexpr int kWarmUp = 4;

std::vector<SearchText> with_answers(std::vector<SearchText> texts) {
  std::erase_if(texts, [](const SearchText& text) {
    return text.n_prompt == 0 || text.n_prompt + 1 >= text.tokens.size();
  });
  if (texts.empty()) {
    fail(ErrorCode::kInvalidArgument, "there is no answer to search layers on: use other prompts");
  }
  return texts;
}

int longest(const std::vector<SearchText>& texts) {
  size_t n = 0;
  for (const SearchText& text : texts) n = std::max(n, text.tokens.size());
  // And a tree behind it.
  return static_cast<int>(n) + kLargestTree + 1;
}

}  // namespace

MeasuredSpeed::MeasuredSpeed(Executor& executor, const Vocabulary& vocabulary, const ChainOptions& draft,
                             std::vector<SearchText> texts)
    : executor_(executor),
      draft_(draft),
      texts_(with_answers(std::move(texts))),
      stepper_(executor, vocabulary,
               {.n_slots = static_cast<int>(texts_.size()), .n_context = longest(texts_)}) {
  rate({});  // reads the prompts
}

MeasuredSpeed::~MeasuredSpeed() {
  stepper_.slots().clear();
}

int MeasuredSpeed::n_cells(const std::vector<SearchText>& texts) {
  return static_cast<int>(texts.size()) * longest(texts);
}

double MeasuredSpeed::answer(const SearchText& text, int n_tokens, const Speculation& speculation) {
  Request request;
  request.prompt.assign(text.tokens.begin(),
                        text.tokens.begin() + static_cast<ptrdiff_t>(text.n_prompt));
  request.options.sampling.temperature = 0;
  request.options.max_tokens = n_tokens;
  request.options.ignore_eos = true;
  const RequestId id = stepper_.submit(std::move(request), speculation);
  for (;;) {
    if (auto result = stepper_.take(id)) {
      if (auto* error = std::get_if<std::exception_ptr>(&*result)) std::rethrow_exception(*error);
      return std::get<Generation>(*result).timings.predicted_ms;
    }
    stepper_.step();
  }
}

double MeasuredSpeed::rate(const Speculation& speculation) {
  answer(texts_.front(), kWarmUp, speculation);
  double ms = 0;
  int n_tokens = 0;
  for (const SearchText& text : texts_) {
    const auto n = static_cast<int>(text.tokens.size() - text.n_prompt);
    ms += answer(text, n, speculation);
    n_tokens += n - 1;  // the first comes with the prompt
  }
  return 1e3 * n_tokens / std::max(ms, 1e-3);
}

double MeasuredSpeed::speedup(const LayerSet& layers) {
  if (plain_rate_ == 0 || n_since_plain_ == kPlainEvery) {
    const double now = rate({});
    plain_rate_ = plain_rate_ == 0 ? now : (plain_rate_ + now) / 2;
    n_since_plain_ = 0;
  }
  ++n_since_plain_;
  SelfMethod method(draft_, executor_, std::make_unique<FixedLayers>(layers));
  FixedBudget budget(kLargestTree);
  return rate({.method = &method, .budget = &budget}) / plain_rate_;
}

}  // namespace forerun
