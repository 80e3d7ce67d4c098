#include "sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/error.h"
#include "support/odd_floats.h"

namespace forerun {
namespace {

using testing::UnorderedElementsAre;

// Everything off but temperature 1.
SamplingOptions plain() {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = 1;
  return options;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::vector<TokenId> ids(const std::vector<int>& values) {
  std::vector<TokenId> out;
  for (int v : values) out.push_back(TokenId{v});
  return out;
}

Distribution distribution_of(const SamplingOptions& options, const std::vector<float>& logits,
                             const std::vector<int>& text = {}) {
  const Sampler sampler(options, static_cast<int>(logits.size()));
  SamplerScratch scratch;
  return sampler.distribution(logits, sampler.state_after(ids(text)), scratch);
}

// The distribution as probabilities by token id, 0 for tokens that are no candidates.
std::vector<double> probabilities(const SamplingOptions& options, const std::vector<float>& logits,
                                  const std::vector<int>& text = {}) {
  const Distribution d = distribution_of(options, logits, text);
  std::vector<double> out;
  for (size_t i = 0; i < logits.size(); ++i) {
    out.push_back(std::exp(static_cast<double>(d.logprob(TokenId{static_cast<int32_t>(i)}))));
  }
  return out;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

TEST(Sampler, PlainDistributionIsTheSoftmax) {
  expect_near(probabilities(plain(), logs({0.5, 0.2, 0.3})), {0.5, 0.2, 0.3});
  expect_near(probabilities(plain(), {1000, 1001}), {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0))});
}

TEST(Sampler, TemperatureRaisesProbabilitiesToAPower) {
  SamplingOptions options = plain();
  options.temperature = 0.5f;
  expect_near(probabilities(options, logs({0.5, 0.2, 0.3})), {0.25 / 0.38, 0.04 / 0.38, 0.09 / 0.38});
  options.temperature = 1e-40f;  // quotients overflow
  expect_near(probabilities(options, logs({0.3, 0.2, 0.5})), {0, 0, 1});
  EXPECT_EQ(distribution_of(options, logs({0.3, 0.2, 0.5})).size(), 1u);
  options.temperature = 1e30f;
  expect_near(probabilities(options, logs({0.5, 0.2, 0.2, 0.1})), {0.25, 0.25, 0.25, 0.25});
}

TEST(Sampler, GreedyTakesTheFirstOfTheBest) {
  SamplingOptions options;
  options.temperature = 0;
  const Distribution d = distribution_of(options, {1, 3, 2, 3, -1});
  EXPECT_EQ(d.tokens, ids({1}));
  EXPECT_EQ(d.logprobs.front(), 0.0f);
  options.logit_bias = {{TokenId{1}, -0.5f}};
  EXPECT_EQ(distribution_of(options, {1, 3, 2, 3, -1}).tokens, ids({3}));
}

TEST(Sampler, TopK) {
  SamplingOptions options = plain();
  const auto logits = logs({0.1, 0.4, 0.2, 0.3});
  options.top_k = 2;
  expect_near(probabilities(options, logits), {0, 4.0 / 7, 0, 3.0 / 7});
  options.top_k = 1;
  expect_near(probabilities(options, logits), {0, 1, 0, 0});
  options.top_k = 4;
  expect_near(probabilities(options, logits), {0.1, 0.4, 0.2, 0.3});
  options.top_k = 1000;
  expect_near(probabilities(options, logits), {0.1, 0.4, 0.2, 0.3});
}

TEST(Sampler, TopKBreaksTiesByTokenId) {
  SamplingOptions options = plain();
  options.top_k = 3;
  EXPECT_THAT(distribution_of(options, {1, 2, 1, 1, 2, 1}).tokens,
              UnorderedElementsAre(TokenId{1}, TokenId{4}, TokenId{0}));
}

TEST(Sampler, TopP) {
  SamplingOptions options = plain();
  const auto logits = logs({0.2, 0.5, 0.3});
  options.top_p = 0.79f;
  expect_near(probabilities(options, logits), {0, 0.625, 0.375});
  options.top_p = 0.81f;
  expect_near(probabilities(options, logits), {0.2, 0.5, 0.3});
  options.top_p = 0.5f;  // reached exactly: one token is enough
  expect_near(probabilities(options, {0, 0}), {1, 0});
  options.top_p = 1e-9f;  // never none
  expect_near(probabilities(options, logits), {0, 1, 0});
}

TEST(Sampler, MinP) {
  SamplingOptions options = plain();
  const auto logits = logs({0.1, 0.5, 0.24, 0.16});
  options.min_p = 0.3f;
  expect_near(probabilities(options, logits), {0, 0.5 / 0.9, 0.24 / 0.9, 0.16 / 0.9});
  options.min_p = 1.0f;  // only tokens as probable as the best
  expect_near(probabilities(options, {2, 1, 2}), {0.5, 0, 0.5});
}

// Top-p's share refers to what top-k left, and temperature comes last: 0.4 is 57 % of
// what top-k leaves but 40 % of all, and only at temperature 1.
TEST(Sampler, StepsApplyInOrder) {
  SamplingOptions options = plain();
  const auto logits = logs({0.1, 0.4, 0.2, 0.3});
  options.top_k = 2;
  options.top_p = 0.55f;
  expect_near(probabilities(options, logits), {0, 1, 0, 0});
  options.temperature = 5;
  expect_near(probabilities(options, logits), {0, 1, 0, 0});
  options.top_k = 0;
  options.temperature = 0.5f;
  expect_near(probabilities(options, logits), {0, 16.0 / 25, 0, 9.0 / 25});
}

TEST(Sampler, LogitBiasAddsAndForbids) {
  SamplingOptions options = plain();
  options.logit_bias = {
      {TokenId{0}, std::log(4.0f)}, {TokenId{0}, -std::log(2.0f)}, {TokenId{2}, -kInf}};
  expect_near(probabilities(options, logs({0.25, 0.5, 0.25})), {0.5, 0.5, 0});
  options.logit_bias = {{TokenId{1}, -kInf}};
  expect_near(probabilities(options, {1, kInf, 1}), {0.5, 0, 0.5});
}

TEST(Sampler, RepeatPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  SamplingOptions options = plain();
  options.repeat_penalty = 2;
  // Logits after the penalty: 1, -2, 0, 2.
  const double total = std::exp(1) + std::exp(-2) + 1 + std::exp(2);
  expect_near(probabilities(options, {2, -1, 0, 2}, {0, 1, 1, 2}),
              {std::exp(1) / total, std::exp(-2) / total, 1 / total, std::exp(2) / total});
}

TEST(Sampler, PresenceCountsOnceAndFrequencyEachTime) {
  SamplingOptions options = plain();
  options.presence_penalty = 0.5f;
  options.frequency_penalty = 0.25f;
  options.logit_bias = {{TokenId{0}, 1.0f}};
  // Token 0: bias +1, three times: -0.5 - 3 * 0.25; token 1: once.
  const double a = std::exp(1 - 0.5 - 0.75), b = std::exp(-0.75), c = 1;
  expect_near(probabilities(options, {0, 0, 0}, {0, 1, 0, 0}),
              {a / (a + b + c), b / (a + b + c), c / (a + b + c)});
}

TEST(Sampler, PenaltyWindow) {
  SamplingOptions options = plain();
  options.presence_penalty = std::log(2.0f);
  options.repeat_last_n = 2;
  expect_near(probabilities(options, {0, 0, 0}, {0, 1, 2}), {0.5, 0.25, 0.25});
  options.repeat_last_n = -1;
  expect_near(probabilities(options, {0, 0, 0}, {0, 0, 1}), {0.25, 0.25, 0.5});
  options.repeat_last_n = 0;
  expect_near(probabilities(options, {0, 0, 0}, {0, 1, 2}), {1 / 3., 1 / 3., 1 / 3.});
}

TEST(Sampler, ScratchCarriesNothingOver) {
  SamplingOptions options;
  options.seed = 1;
  options.frequency_penalty = 1;
  const Sampler penalising(options, 100);
  const Sampler small(plain(), 10);
  std::mt19937 random(1);
  std::vector<float> logits(100);
  SamplerScratch shared;
  for (int round = 0; round < 200; ++round) {
    for (float& x : logits) x = static_cast<float>(random() % 100) / 10;
    std::vector<TokenId> text;
    while (text.size() < random() % 80) text.push_back(TokenId{static_cast<int32_t>(random() % 100)});
    const SamplerState state = penalising.state_after(text);
    SamplerScratch fresh;
    const Distribution& expected = penalising.distribution(logits, state, fresh);
    const Distribution& actual = penalising.distribution(logits, state, shared);
    ASSERT_EQ(actual.tokens, expected.tokens);
    ASSERT_EQ(actual.logprobs, expected.logprobs);
    ASSERT_EQ(small.distribution(std::span<const float>(logits).first(10), {}, shared).size(), 10u);
  }
}

TEST(Sampler, InvalidLogitsAreNeverChosen) {
  std::vector<SamplingOptions> cases(5, plain());
  cases[1].top_k = 3;
  cases[2].top_p = 0.99f;
  cases[3].min_p = 0.01f;
  cases[4].presence_penalty = 1;
  for (const SamplingOptions& options : cases) {
    expect_near(probabilities(options, {kNan, 0, -kInf, 0, kNan}, {0}), {0, 0.5, 0, 0.5, 0});
    expect_near(probabilities(options, {0, kInf, -kInf, kInf, kNan}, {0}), {0, 0.5, 0, 0.5, 0});
  }
  SamplingOptions greedy;
  greedy.temperature = 0;
  EXPECT_EQ(distribution_of(greedy, {kNan, -kInf, -5, kNan}).tokens, ids({2}));
}

TEST(Sampler, HugeAdjustmentsSaturate) {
  SamplingOptions options = plain();
  options.frequency_penalty = -3e38f;
  expect_near(probabilities(options, {0, 0, 0}, {1, 1, 1}), {0, 1, 0});
  options = plain();
  options.logit_bias = {{TokenId{2}, 3e38f}, {TokenId{2}, 3e38f}};
  expect_near(probabilities(options, {0, 0, 0}), {0, 0, 1});
}

TEST(Sampler, NothingLeftIsAnError) {
  std::vector<SamplingOptions> cases(3, plain());
  cases[1].temperature = 0;
  cases[2].top_k = 1;
  for (SamplingOptions options : cases) {
    EXPECT_THROW(distribution_of(options, {kNan, -kInf}), Error);
    options.logit_bias = {{TokenId{0}, -kInf}, {TokenId{1}, -kInf}};
    EXPECT_THROW(distribution_of(options, {1, 2}), Error);
  }
}

TEST(Sampler, OptionsAreValidated) {
  SamplingOptions options;
  options.top_p = 2;
  EXPECT_THROW(Sampler(options, 10), Error);
}

TEST(Sampler, TakesARandomSeedAndReportsIt) {
  EXPECT_EQ(Sampler(plain(), 10).seed(), 1u);
  const Sampler a(SamplingOptions{}, 10);
  const Sampler b(SamplingOptions{}, 10);
  EXPECT_NE(a.seed(), b.seed());
  EXPECT_LT(a.seed(), uint64_t{1} << 53);
}

// Straight from the definitions, with a full sort, against the selections' shortcuts.
std::vector<TokenId> reference_candidates(const SamplingOptions& options,
                                          const std::vector<float>& logits) {
  std::vector<ScoredToken> all;
  for (size_t i = 0; i < logits.size(); ++i)
    all.push_back({logits[i], TokenId{static_cast<int32_t>(i)}});
  std::sort(all.begin(), all.end());
  const auto p = [&](const ScoredToken& s) {
    return std::exp(static_cast<double>(s.logit - all[0].logit));
  };
  if (options.top_k > 0) all.resize(std::min(all.size(), static_cast<size_t>(options.top_k)));
  if (options.top_p < 1) {
    double total = 0, sum = 0;
    for (const ScoredToken& s : all) total += p(s);
    size_t n = 0;
    while (n < all.size() && sum / total < static_cast<double>(options.top_p)) sum += p(all[n++]);
    all.resize(n);
  }
  std::vector<TokenId> tokens;
  for (const ScoredToken& s : all) {
    if (p(s) >= static_cast<double>(options.min_p)) tokens.push_back(s.token);
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

TEST(Sampler, TruncationEqualsTheDefinitionOnRandomLogits) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::normal_distribution<float> normal(0, static_cast<float>(1 + random() % 5));
    std::vector<float> logits(10 + random() % 3'000);
    for (float& x : logits) x = normal(random);
    SamplingOptions options = plain();
    if (random() % 2 == 0) options.top_k = static_cast<int>(1 + random() % 400);
    if (random() % 2 == 0) options.top_p = static_cast<float>(1 + random() % 999) / 1000;
    if (random() % 2 == 0) options.min_p = static_cast<float>(1 + random() % 300) / 1000;
    options.temperature = 0.7f;
    Distribution d = distribution_of(options, logits);
    double sum = 0;
    for (float logprob : d.logprobs) sum += std::exp(static_cast<double>(logprob));
    EXPECT_NEAR(sum, 1, 2e-6);
    std::sort(d.tokens.begin(), d.tokens.end());
    ASSERT_EQ(d.tokens, reference_candidates(options, logits))
        << options.top_k << ' ' << options.top_p << ' ' << options.min_p;
  }
}

}  // namespace
}  // namespace forerun
