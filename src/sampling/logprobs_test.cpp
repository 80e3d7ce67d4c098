#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/odd_floats.h"

namespace forerun {
namespace {

TEST(Logprobs, EqualLogSoftmaxInDouble) {
  std::mt19937 random(1);
  LogprobScratch scratch;
  for (float shift : {0.0f, -1000.0f, 1000.0f}) {
    std::normal_distribution<float> normal(shift, 4);
    std::vector<float> logits(5'003);
    for (float& x : logits) x = normal(random);
    double total = 0;
    for (float x : logits) total += std::exp(static_cast<double>(x - shift));
    const double log_total = std::log(total) + static_cast<double>(shift);

    const TokenLogprobs out = token_logprobs(logits, TokenId{17}, 10, scratch);
    EXPECT_EQ(out.chosen.token, TokenId{17});
    EXPECT_NEAR(static_cast<double>(out.chosen.logprob), static_cast<double>(logits[17]) - log_total,
                1e-4);
    ASSERT_EQ(out.top.size(), 10u);
    std::vector<float> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(logits[static_cast<size_t>(to_int(out.top[i].token))], sorted[i]);
      EXPECT_NEAR(static_cast<double>(out.top[i].logprob), static_cast<double>(sorted[i]) - log_total,
                  1e-4);
    }
  }
}

TEST(Logprobs, HandComputed) {
  LogprobScratch scratch;
  const std::vector<float> logits{0.0f, std::log(3.0f), 0.0f, -kInf, kNan};
  const TokenLogprobs out = token_logprobs(logits, TokenId{2}, 5, scratch);
  EXPECT_FLOAT_EQ(out.chosen.logprob, std::log(0.2f));
  ASSERT_EQ(out.top.size(), 3u);
  EXPECT_EQ(out.top[0].token, TokenId{1});
  EXPECT_FLOAT_EQ(out.top[0].logprob, std::log(0.6f));
  EXPECT_EQ(out.top[1].token, TokenId{0});
  EXPECT_EQ(out.top[2].token, TokenId{2});
  EXPECT_EQ(token_logprobs(logits, TokenId{4}, 0, scratch).chosen.logprob, -kInf);
  EXPECT_TRUE(token_logprobs(logits, TokenId{4}, 0, scratch).top.empty());
}

TEST(Logprobs, InfiniteAndInvalidLogitsDoNotSpread) {
  LogprobScratch scratch;
  const TokenLogprobs infinite =
      token_logprobs(std::vector<float>{1, kInf, kInf, kNan}, TokenId{2}, 2, scratch);
  EXPECT_FLOAT_EQ(infinite.chosen.logprob, std::log(0.5f));
  EXPECT_EQ(infinite.top.front().token, TokenId{1});
  const TokenLogprobs none = token_logprobs(std::vector<float>{kNan, -kInf}, TokenId{0}, 2, scratch);
  EXPECT_EQ(none.chosen.logprob, -kInf);
  EXPECT_TRUE(none.top.empty());
}

}  // namespace
}  // namespace forerun
