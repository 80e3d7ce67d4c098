#include "tune/answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "engine/stepper_fixture.h"
#include "model/own_sequence.h"
#include "sampling/vocab_ops.h"

namespace forerun {
namespace {

class AnswersTest : public StepperTest {
 protected:
  static constexpr int kTogether = 4;  // a token of each in a pass
  static constexpr int kPrompts = 3 * kTogether;

  std::vector<std::vector<TokenId>> prompts() {
    std::vector<std::vector<TokenId>> prompts;
    for (char c = 'a'; c < 'a' + kPrompts; ++c) prompts.push_back(tokens(std::string(5, c)));
    return prompts;
  }
  std::vector<SearchText> answer(const std::vector<std::vector<TokenId>>& prompts,
                                 const AnsweringOptions& options) {
    return answer_prompts(narrow_, loaded_->vocabulary, prompts, options);
  }
  // Logits of answers that do not end by themselves.
  std::vector<float> without_ends(std::span<const float> logits) {
    std::vector<float> allowed(logits.begin(), logits.end());
    for (size_t id = 0; id < allowed.size(); ++id) {
      const TokenId token{static_cast<int32_t>(id)};
      if (loaded_->vocabulary.is_end_of_generation(token))
        allowed[id] = -std::numeric_limits<float>::infinity();
    }
    return allowed;
  }
  void expect_nothing_left() {
    EXPECT_EQ(narrow_.cells().n_free(), narrow_.cells().n_cells());
    EXPECT_FALSE(narrow_.cells().exists(SequenceId{0}));
  }

  Executor narrow_{loaded_->model,
                   ExecutorOptions{.kv = {.n_cells = kKvGranularity}, .max_rows = kTogether}};
};

TEST_F(AnswersTest, AreThoseOfPlainDecoding) {
  const std::vector<SearchText> texts = answer(prompts(), {.generation = greedy(10)});
  expect_nothing_left();
  ASSERT_EQ(texts.size(), static_cast<size_t>(kPrompts));
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto text = std::span(texts[i].tokens);
    ASSERT_EQ(texts[i].n_prompt, prompts()[i].size());
    EXPECT_TRUE(std::ranges::equal(text.first(texts[i].n_prompt), prompts()[i]));
    ASSERT_EQ(text.size(), texts[i].n_prompt + 10);
    const OwnSequence alone(executor_->cells());
    for (size_t n_read = 0, end = texts[i].n_prompt; end < text.size(); n_read = end++) {
      const auto logits = executor_->read(alone.id(), text.subspan(n_read, end - n_read)).value();
      ASSERT_EQ(argmax(without_ends(logits.all())), text[end]) << end;
    }
  }
}

TEST_F(AnswersTest, EndWhereTheyShould) {
  const auto all = answer(prompts(), {.generation = greedy(10)});
  AnsweringOptions options{.generation = greedy(10)};
  // Where it comes first an answer ends; those that begin with it are left out.
  const TokenId end = all[0].tokens[all[0].n_prompt];
  options.generation.stop_tokens = {end};
  std::vector<std::vector<TokenId>> expected;
  for (const SearchText& text : all) {
    const auto first = text.tokens.begin() + static_cast<std::ptrdiff_t>(text.n_prompt);
    const auto place = std::find(first, text.tokens.end(), end);
    if (place != first) expected.emplace_back(text.tokens.begin(), place);
  }
  std::vector<std::vector<TokenId>> ended;
  for (const SearchText& text : answer(prompts(), options)) ended.push_back(text.tokens);
  EXPECT_EQ(ended, expected);
  EXPECT_LT(ended.size(), all.size());
}

TEST_F(AnswersTest, CancelledTheyAreThoseThatAreComplete) {
  double share = 0;
  AnsweringOptions options{.generation = greedy(10)};
  options.progress = [&](double now) {
    EXPECT_GT(now, share);
    share = now;
  };
  EXPECT_EQ(answer(prompts(), options).size(), static_cast<size_t>(kPrompts));
  EXPECT_EQ(share, 1);
  share = 0;
  options.is_cancelled = [&] { return share > 0.7; };
  const size_t n_complete = answer(prompts(), options).size();
  EXPECT_GE(n_complete, static_cast<size_t>(kTogether));
  EXPECT_LT(n_complete, static_cast<size_t>(kPrompts));
  expect_nothing_left();
  options.is_cancelled = [] { return true; };
  EXPECT_TRUE(answer(prompts(), options).empty());
}

TEST_F(AnswersTest, AFailureLeavesNothing) {
  const auto fail = []() -> bool { throw Error(ErrorCode::kIo, "enough"); };
  int n_asked = 0;
  const AnsweringOptions options{.generation = greedy(10),
                                 .is_cancelled = [&] { return ++n_asked > 5 && fail(); }};
  EXPECT_THROW(answer(prompts(), options), Error);
  expect_nothing_left();
  for (const size_t length : {size_t{0}, size_t{kKvGranularity}}) {
    auto with_bad = prompts();
    with_bad.back().assign(length, TokenId{1});
    EXPECT_THROW(answer(with_bad, {.generation = greedy(10)}), Error) << length;
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace forerun
