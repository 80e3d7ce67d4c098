#include "layers/search_text.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "model/own_sequence.h"
#include "model/scratch_guard.h"
#include "sampling/vocab_ops.h"

namespace forerun {
namespace {

[[noreturn]] void fail_full() {
  fail(ErrorCode::kInvalidArgument,
       "the texts to search on do not fit into the context: use fewer or shorter ones");
}

// A text while its answer is written. The sequence is gone with it.
class Answer {
 public:
  Answer(Executor& executor, std::span<const TokenId> prompt) : sequence_(executor.cells()) {
    text_.tokens.assign(prompt.begin(), prompt.end());
    text_.n_prompt = prompt.size();
  }

  SequenceId sequence() const { return sequence_.id(); }
  const SearchText& text() const { return text_; }
  size_t n_answered() const { return text_.tokens.size() - text_.n_prompt; }
  bool is_over() const { return is_over_; }

  // The logits behind the text say how it goes on.
  void grow(std::span<const float> logits, const AnswerOptions& options) {
    const auto token = argmax(logits);
    is_over_ = !token || (options.is_end && options.is_end(*token));
    if (is_over_) return;
    text_.tokens.push_back(*token);
    is_over_ = n_answered() >= static_cast<size_t>(options.n_tokens);
  }

 private:
  OwnSequence sequence_;
  SearchText text_;
  bool is_over_ = false;
};

// A token more for every answer that is not over. false: all are.
bool write_token(Executor& executor, std::span<const std::unique_ptr<Answer>> answers,
                 const AnswerOptions& options) {
  std::vector<Answer*> open;
  for (const auto& answer : answers) {
    if (!answer->is_over()) open.push_back(answer.get());
  }
  const auto max_rows = static_cast<size_t>(executor.max_rows());
  for (size_t begin = 0; begin < open.size(); begin += max_rows) {
    const auto together = std::span(open).subspan(begin, std::min(max_rows, open.size() - begin));
    Pass pass;
    std::vector<ScratchGuard> guards;
    for (const Answer* answer : together) {
      const SequenceId sequence = answer->sequence();
      guards.emplace_back(executor.cells(), sequence);
      const auto node = executor.cells().extend(sequence);
      if (!node) fail_full();
      pass.rows.push_back(
          {.sequence = sequence, .node = *node, .token = answer->text().tokens.back(), .logits = true});
    }
    const PassResult& result = executor.forward(pass);
    for (size_t i = 0; i < together.size(); ++i) {
      executor.cells().commit(together[i]->sequence(), {&pass.rows[i].node, 1});
      together[i]->grow(result.logits(i), options);
    }
  }
  return !open.empty();
}

}  // namespace

std::span<const float> read_all(Executor& executor, SequenceId sequence, std::span<const TokenId> text) {
  CHECK(!text.empty());
  const auto max_rows = static_cast<size_t>(executor.max_rows());
  std::span<const float> logits;
  for (size_t begin = 0; begin < text.size(); begin += max_rows) {
    const auto read =
        executor.read(sequence, text.subspan(begin, std::min(max_rows, text.size() - begin)));
    if (!read) fail_full();
    logits = *read;
  }
  return logits;
}

std::vector<SearchText> write_answers(Executor& executor,
                                      const std::vector<std::vector<TokenId>>& prompts,
                                      const AnswerOptions& options) {
  CHECK(options.n_tokens >= 1);
  const auto is_cancelled = [&] { return options.is_cancelled && options.is_cancelled(); };
  const double n_steps = static_cast<double>(prompts.size()) + options.n_tokens;
  double n_done = 0;
  const auto show = [&] {
    if (options.progress) options.progress(std::min(1.0, ++n_done / n_steps));
  };
  std::vector<std::unique_ptr<Answer>> answers;
  for (const auto& prompt : prompts) {
    if (prompt.empty()) fail(ErrorCode::kInvalidArgument, "a prompt to search on is empty");
    if (is_cancelled()) break;
    answers.push_back(std::make_unique<Answer>(executor, prompt));
    answers.back()->grow(read_all(executor, answers.back()->sequence(), prompt), options);
    show();
  }
  while (!is_cancelled() && write_token(executor, answers, options)) show();
  std::vector<SearchText> texts;
  for (const auto& answer : answers) {
    if (answer->n_answered() > 0) texts.push_back(answer->text());
  }
  return texts;
}

}  // namespace forerun
