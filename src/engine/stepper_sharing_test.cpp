// Many requests share one cache and one engine: cells that run out, texts that are kept, priorities,
// other threads. None of it changes a text.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/stepper_fixture.h"
#include "plan/own_planner.h"

namespace forerun {
namespace {

class StepperSharingTest : public StepperTest {
 protected:
  static constexpr int kFewCells = 256;  // one context

  static std::string prompt(int i) {
    return std::string(static_cast<size_t>(20 + 7 * i), static_cast<char>('a' + i));
  }
  static GenerationOptions options(int i) {
    return i % 2 == 0 ? greedy(90) : sampled(90, 5u + static_cast<uint64_t>(i));
  }

  // Of each alone, with room for all.
  std::vector<Generation> alone(int n) {
    std::vector<Generation> results;
    for (int i = 0; i < n; ++i) {
      start();
      results.push_back(generate(prompt(i), options(i)));
    }
    return results;
  }
};

TEST_F(StepperSharingTest, RequestsThatDoNotFitTogetherWaitForEachOther) {
  constexpr int kRequests = 6;
  const std::vector<Generation> expected = alone(kRequests);
  start(/*min_rows=*/1, kFewCells);
  std::vector<RequestId> ids;
  for (int i = 0; i < kRequests; ++i) ids.push_back(submit(prompt(i), options(i)));
  for (int i = 0; i < kRequests; ++i) {
    const Generation result = finish(ids[static_cast<size_t>(i)]);
    EXPECT_EQ(result.tokens, expected[static_cast<size_t>(i)].tokens) << i;
    EXPECT_EQ(result.text, expected[static_cast<size_t>(i)].text) << i;
  }
  EXPECT_GT(stepper_->statistics().n_suspended, 0);
  EXPECT_FALSE(stepper_->step()) << "nothing is left to do";
  stepper_->slots().clear();
  EXPECT_EQ(executor_->cells().n_free(), kFewCells);
}

TEST_F(StepperSharingTest, PromptsThatDoNotFitTogetherAreReadOneAfterTheOther) {
  start();
  const std::string first(200, 'x'), second(210, 'y');
  const std::vector<TokenId> one = generate(first, greedy(10)).tokens;
  const std::vector<TokenId> other = generate(second, greedy(10)).tokens;
  start(/*min_rows=*/1, kFewCells);
  const RequestId a = submit(first, greedy(10)), b = submit(second, greedy(10));
  EXPECT_EQ(finish(a).tokens, one);
  EXPECT_EQ(finish(b).tokens, other);
}

TEST_F(StepperSharingTest, TheLeastRecentlyUsedTextIsForgottenFirst) {
  start(/*min_rows=*/1, kFewCells);
  const auto n_cached = [&](const std::string& text) {
    return generate(text, greedy(2)).timings.n_cached;
  };
  const std::string a(70, 'a'), b(70, 'b'), c(70, 'c'), d(70, 'd');
  for (const std::string& text : {a, b, c}) n_cached(text);
  EXPECT_GT(n_cached(a), 60);
  EXPECT_EQ(n_cached(d), 0);  // takes the place of b
  EXPECT_GT(n_cached(a), 60);
  EXPECT_GT(n_cached(c), 60);
  EXPECT_EQ(n_cached(b), 0);
}

TEST_F(StepperSharingTest, ABeginningIsSharedByAllThatHaveIt) {
  start();
  const std::string beginning(120, 's');
  generate(beginning, greedy(1));
  std::vector<RequestId> ids;
  for (int i = 0; i < kSlots; ++i)
    ids.push_back(submit(beginning + static_cast<char>('0' + i), greedy(20)));
  stepper_->step();
  // Four texts of more than 120 tokens, of which 120 are in the cache once.
  EXPECT_LT(stepper_->statistics().n_cells_used, 120 + 4 * 40);
  for (const RequestId id : ids) EXPECT_GE(finish(id).timings.n_cached, 100);
}

TEST_F(StepperSharingTest, ThoseWithAHigherPriorityBeginFirst) {
  start();
  std::vector<RequestId> ids;
  for (int i = 0; i < kSlots; ++i) ids.push_back(submit(prompt(i), greedy(10)));
  stepper_->step();
  const RequestId usual = submit("usual", greedy(10));
  const RequestId urgent =
      stepper_->submit({.prompt = tokens("urgent"), .options = greedy(10), .priority = 1});
  std::vector<RequestId> finished;
  for (;;) {
    const StepResult result = stepper_->step();
    if (!result) break;
    finished.insert(finished.end(), result.finished.begin(), result.finished.end());
  }
  ASSERT_EQ(finished.size(), ids.size() + 2);
  EXPECT_EQ(std::ranges::find(finished, urgent), finished.end() - 2);
  EXPECT_EQ(finished.back(), usual);
}

TEST_F(StepperSharingTest, ChunksAreTheAnswer) {
  GenerationOptions wanted = greedy(30);
  wanted.sampling.n_logprobs = 1;
  std::string text;
  std::vector<TokenId> all;
  std::vector<float> logprobs;
  size_t n_origins = 0;
  const Generation result = finish(
      stepper_->submit({.prompt = tokens("Hi"), .options = wanted, .on_chunk = [&](const Chunk& chunk) {
                          text += chunk.text;
                          all.insert(all.end(), chunk.tokens.begin(), chunk.tokens.end());
                          for (const TokenLogprobs& one : chunk.logprobs)
                            logprobs.push_back(one.chosen.logprob);
                          n_origins += chunk.origins.size();
                          EXPECT_EQ(chunk.tokens.size(), chunk.logprobs.size());
                        }}));
  EXPECT_EQ(text, result.text);
  EXPECT_EQ(all, result.tokens);
  EXPECT_EQ(n_origins, result.tokens.size());
  ASSERT_EQ(logprobs.size(), result.logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i) EXPECT_EQ(logprobs[i], result.logprobs[i].chosen.logprob);
}

// One thread steps; others submit, cancel, take and ask. Under ThreadSanitizer this is the test of it.
TEST_F(StepperSharingTest, OtherThreadsMayAskAtAnyTime) {
  constexpr int kThreads = 4, kEach = 6;
  const std::vector<Generation> expected = alone(kThreads);
  start(/*min_rows=*/1, 2 * kFewCells);
  std::atomic<int> n_done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < kEach; ++k) {
        const RequestId id = submit(prompt(i), options(i));
        const bool is_cancelled = k % 3 == 2;
        if (is_cancelled) stepper_->cancel(id);
        std::optional<RequestResult> result;
        while (!(result = stepper_->take(id))) {
          EXPECT_GE(stepper_->statistics().n_cells_used, 0);
          std::this_thread::yield();
        }
        const auto& generation = std::get<Generation>(*result);
        EXPECT_TRUE(is_cancelled || generation.tokens == expected[static_cast<size_t>(i)].tokens);
        ++n_done;
      }
      stepper_->wake();
    });
  }
  while (n_done < kThreads * kEach) {
    if (!stepper_->step()) stepper_->wait(std::chrono::milliseconds(100));
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace forerun
