#include "disco/answers.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/stepper_fixture.h"

namespace forerun {
namespace {

class AnswersTest : public StepperTest {
 protected:
  static constexpr int kPrompts = 3 * kSlots;

  std::vector<std::vector<TokenId>> prompts() {
    std::vector<std::vector<TokenId>> prompts;
    for (char c = 'a'; c < 'a' + kPrompts; ++c) prompts.push_back(tokens(std::string(5, c)));
    return prompts;
  }
  // No request waits, runs, or has an answer that nobody took.
  void expect_nothing_left() {
    EXPECT_FALSE(stepper_->step());
    for (int i = 0; i < kPrompts; ++i) EXPECT_FALSE(stepper_->take(RequestId{i}).has_value()) << i;
    stepper_->slots().clear();  // which are all free
  }
};

TEST_F(AnswersTest, AreThoseOfTheModel) {
  const std::vector<SearchText> texts = answer_prompts(*stepper_, prompts(), {.generation = greedy(10)});
  expect_nothing_left();
  ASSERT_EQ(texts.size(), static_cast<size_t>(kPrompts));
  for (int i = 0; i < kPrompts; ++i) {
    std::vector<TokenId> expected = prompts()[static_cast<size_t>(i)];
    EXPECT_EQ(texts[static_cast<size_t>(i)].n_prompt, expected.size());
    start();
    const Generation alone = finish(stepper_->submit({.prompt = expected, .options = greedy(10)}));
    expected.insert(expected.end(), alone.tokens.begin(), alone.tokens.end());
    EXPECT_EQ(texts[static_cast<size_t>(i)].tokens, expected);
  }
}

TEST_F(AnswersTest, CancelledTheyAreThoseThatAreComplete) {
  double share = 0;
  const AnsweringOptions options{.generation = greedy(10),
                                 .progress = [&](double now) { share = now; },
                                 .is_cancelled = [&] { return share > 0; }};
  EXPECT_EQ(answer_prompts(*stepper_, prompts(), options).size(), static_cast<size_t>(kSlots));
  expect_nothing_left();
}

TEST_F(AnswersTest, AFailureLeavesNothing) {
  const auto fail = []() -> bool { throw Error(ErrorCode::kIo, "enough"); };
  int n_asked = 0;
  const AnsweringOptions options{.generation = greedy(10),
                                 .is_cancelled = [&] { return ++n_asked > 5 && fail(); }};
  EXPECT_THROW(answer_prompts(*stepper_, prompts(), options), Error);
  expect_nothing_left();
  // One that does not fit, after some that were submitted.
  auto too_long = prompts();
  too_long.back() = tokens(std::string(2 * kContext, 'x'));
  start();
  EXPECT_THROW(answer_prompts(*stepper_, too_long, {.generation = greedy(10)}), Error);
  expect_nothing_left();
}

}  // namespace
}  // namespace forerun
