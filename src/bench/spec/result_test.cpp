#include "bench/spec/result.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

SpecRun run_of(int n_tokens, double decode_ms, int token = 1) {
  SpecRun run;
  run.tokens.assign(static_cast<size_t>(n_tokens), TokenId{token});
  run.decode_ms = decode_ms;
  run.prompt_ms = 10;
  return run;
}

// Two prompts; ours take 10 and 5 ms per token, llama-server's 20, 40 and 25.
SpecBenchResult make_result() {
  SpecBenchResult result;
  result.methods = {"none", "auto", "llama:plain", "llama:a", "llama:b"};
  result.n_peers = 3;
  result.prompts = {{.id = "1", .category = "x", .turns = {}},
                    {.id = "2", .category = "y", .turns = {}}};
  result.runs = {{run_of(10, 100), run_of(10, 100)},
                 {run_of(10, 50), run_of(10, 50)},
                 {run_of(10, 200, 2), run_of(5, 100, 2)},
                 {run_of(10, 400, 2), run_of(5, 200, 2)},
                 {run_of(10, 250, 2), run_of(10, 250, 2)}};
  return result;
}

TEST(SpecResult, AnswersOfATurnShareItsTime) {
  std::vector<SpecAnswer> answers = {{.text = "", .run = run_of(10, 30)},
                                     {.text = "", .run = run_of(30, 90)}};
  share_time(answers, {.prompt_ms = 10, .decode_ms = 60});
  EXPECT_DOUBLE_EQ(answers[0].run.decode_ms, 15);
  EXPECT_DOUBLE_EQ(answers[1].run.decode_ms, 45);
  EXPECT_DOUBLE_EQ(answers[0].run.prompt_ms, 5);
  for (SpecAnswer& answer : answers) answer.run.decode_ms = 0;  // one token each
  share_time(answers, {.prompt_ms = 10, .decode_ms = 4});
  EXPECT_DOUBLE_EQ(answers[1].run.decode_ms, 2);
}

TEST(SpecResult, TextsAreComparedWithinOneProgram) {
  const SpecBenchResult result = make_result();
  EXPECT_EQ(result.n_own(), 2u);
  EXPECT_EQ(result.summary(1).n_identical, 2);
  EXPECT_EQ(result.summary(2).n_identical, 2);
  EXPECT_EQ(result.summary(3).n_identical, 2);
  EXPECT_EQ(result.summary(4).n_identical, 1);
  EXPECT_EQ(result.text_reference(1), 0u);
  EXPECT_EQ(result.text_reference(4), 2u);
}

TEST(SpecResult, SpeedIsOverOurPlainDecodingPerToken) {
  const SpecBenchResult result = make_result();
  EXPECT_DOUBLE_EQ(result.summary(0).speedup, 1);
  EXPECT_DOUBLE_EQ(result.summary(1).speedup, 2);
  EXPECT_DOUBLE_EQ(result.summary(2).speedup, 0.5);  // though its second text is shorter
  EXPECT_DOUBLE_EQ(result.summary(3).speedup, 0.25);
  EXPECT_DOUBLE_EQ(result.summary(4, "y").speedup, 0.4);
  EXPECT_DOUBLE_EQ(result.summary(2).speedup_total, 170.0 / 320.0);
}

TEST(SpecResult, BestAgainstBest) {
  const auto comparison = make_result().against_peers();
  ASSERT_TRUE(comparison.has_value());
  EXPECT_EQ(comparison->own, 1u);
  EXPECT_EQ(comparison->peer, 2u);
  EXPECT_DOUBLE_EQ(comparison->speed.value, 4);
  EXPECT_DOUBLE_EQ(comparison->speed.interval.low, 4);
  SpecBenchResult alone = make_result();
  alone.methods.resize(2);
  alone.n_peers = 0;
  EXPECT_FALSE(alone.against_peers().has_value());
}

TEST(SpecResult, PromptsWithoutAnswersCompareAsTheyAre) {
  SpecBenchResult result = make_result();
  result.runs[2][1] = run_of(0, 0);
  EXPECT_DOUBLE_EQ(result.summary(2).speedup, 1);
}

}  // namespace
}  // namespace forerun
