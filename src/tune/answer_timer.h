// Answers the same prompts again and again, one at a time, and says how long each took: what
// searches by measured time are made of.
//
// Prompts stay in the cache, so only answers take time. Not thread-safe.
#pragma once

#include <vector>

#include "engine/stepper.h"
#include "tune/answers.h"

namespace forerun {

class AnswerTimer {
 public:
  // Both outlive it. The executor's cache has n_cells() free cells or more, which are free again
  // afterwards. Texts without an answer of two tokens are left out; throws Error when none is left.
  AnswerTimer(Executor& executor, const Vocabulary& vocabulary, std::vector<SearchText> texts,
              SamplingOptions sampling = greedy_options(1).sampling);

  // How many cells the texts take, and how many tokens one of them and a draft behind it.
  static int n_cells(const std::vector<SearchText>& texts);
  static int n_context(const std::vector<SearchText>& texts);

  size_t n_texts() const { return texts_.size(); }
  // Tokens of an answer that take time: the first comes with the prompt.
  int n_timed(size_t text) const;
  // As many tokens as the text's answer has. Milliseconds after the first token.
  double answer(size_t text, const Speculation& speculation);
  // A few tokens only: the first passes with something new build its graphs.
  void warm_up(const Speculation& speculation);

 private:
  double answer(const SearchText& text, int n_tokens, const Speculation& speculation);

  std::vector<SearchText> texts_;
  SamplingOptions sampling_;
  Stepper stepper_;
};

}  // namespace forerun
