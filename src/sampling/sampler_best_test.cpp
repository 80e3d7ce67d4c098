// From the best logits a sampler makes what it makes of all: the same distribution, bit for bit, and the
// same token.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "core/error.h"
#include "sampling/logits_fixtures.h"
#include "sampling/sampler.h"
#include "support/plain_sampling.h"

namespace forerun {
namespace {

using namespace test;

// nullopt: no token is left.
std::optional<Distribution> distribution_of(const Sampler& sampler, const LogitsView& logits,
                                            const SamplerState& state) {
  SamplerScratch scratch;
  try {
    return sampler.distribution(logits, state, scratch);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void expect_same(const Sampler& sampler, RowWithBest& row, const SamplerState& state, int position) {
  const auto expected = distribution_of(sampler, row.logits(), state);
  const auto got = distribution_of(sampler, row.view(), state);
  ASSERT_EQ(got.has_value(), expected.has_value());
  if (!expected) return;
  ASSERT_EQ(got->tokens, expected->tokens);
  ASSERT_EQ(got->logprobs, expected->logprobs);
  SamplerScratch scratch, other;
  ASSERT_EQ(sampler.sample(row.view(), state, Position{position}, scratch),
            sampler.sample(row.logits(), state, Position{position}, other));
}

SamplingOptions random_options(std::mt19937& random, size_t n_vocab) {
  const auto one_of = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  SamplingOptions options;
  options.temperature = one_of(0.0f, 0.05f, 0.8f, 1.7f);
  options.top_k = one_of(0, 1, 5, 40, 127, 128, 129, 1000);
  options.top_p = one_of(1.0f, 0.95f, 0.4f, 0.999f);
  options.min_p = one_of(0.0f, 0.05f, 0.3f, 1e-6f, 1.0f);
  options.repeat_penalty = one_of(1.0f, 1.1f, 3.0f, 0.8f);
  options.presence_penalty = one_of(0.0f, 0.5f, 20.0f, -0.5f, 3e38f);
  options.frequency_penalty = one_of(0.0f, 0.2f, -1.0f, 3e38f);
  if (random() % 2 == 0)
    options.repeat_penalty = 1.0f, options.presence_penalty = options.frequency_penalty = 0.0f;
  options.repeat_last_n = one_of(-1, 0, 3, 64, 64, 500);
  for (size_t i = random() % 3 == 0 ? random() % 6 : 0; i > 0; --i) {
    options.logit_bias.emplace_back(TokenId{static_cast<int32_t>(random() % n_vocab)},
                                    one_of(-INFINITY, -100.0f, -1.0f, 0.0f, 2.0f));
  }
  options.seed = random();
  return options;
}

// The text has tokens that are likely here as often as others.
std::vector<TokenId> random_text(std::mt19937& random, RowWithBest& row) {
  std::vector<TokenId> text;
  const auto best = row.view().best();
  for (size_t i = random() % 200; i > 0; --i) {
    text.push_back(!best.empty() && random() % 2 == 0
                       ? best[random() % best.size()].token
                       : TokenId{static_cast<int32_t>(random() % row.logits().size())});
  }
  return text;
}

TEST(SamplerOfTheBest, DrawsWhatAllLogitsDraw) {
  std::mt19937 random(1);
  int n_from_best = 0, n_from_all = 0;
  for (int round = 0; round < 2'000; ++round) {
    const size_t n_vocab = std::array<size_t, 5>{2, 100, 128, 129, 2'000}[random() % 5];
    const auto odd = static_cast<Odd>(random() % 4);
    RowWithBest row(odd_logits(random, n_vocab, odd));
    SamplingOptions options = random_options(random, n_vocab);
    // What is likely is forbidden, now and then.
    if (random() % 4 == 0 && !row.view().best().empty())
      options.logit_bias.emplace_back(row.view().best().front().token, -INFINITY);
    const Sampler sampler(options, static_cast<int>(n_vocab));
    const SamplerState state = sampler.state_after(random_text(random, row));
    ASSERT_NO_FATAL_FAILURE(expect_same(sampler, row, state, static_cast<int>(random() % 5'000)))
        << "round " << round;
    (row.n_asked() == 0 ? n_from_best : n_from_all) += 1;
    if (!sampler.draws_from_best()) {
      EXPECT_GT(row.n_asked(), 0);
    }
  }
  EXPECT_GT(n_from_best, 300);
  EXPECT_GT(n_from_all, 300);
}

// Text with the default options, and greedy text, never needs more; neither with the default window of
// penalties nor where the end of the text is forbidden.
TEST(SamplerOfTheBest, NeedsNoMoreForUsualOptions) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    RowWithBest row(odd_logits(random, 3'000, round % 2 == 0 ? Odd::kNothing : Odd::kTies));
    SamplingOptions options;
    if (round % 3 == 0) options.temperature = 0;
    if (round % 5 < 3) options.repeat_penalty = 1.3f;
    if (round % 7 < 3) options.presence_penalty = 50;
    if (round % 11 < 3) options.logit_bias.emplace_back(row.view().best().front().token, -INFINITY);
    options.seed = random();
    const Sampler sampler(options, 3'000);
    EXPECT_TRUE(sampler.draws_from_best());
    ASSERT_NO_FATAL_FAILURE(
        expect_same(sampler, row, sampler.state_after(random_text(random, row)), round));
    EXPECT_EQ(row.n_asked(), 0) << "round " << round;
  }
}

// What truncation leaves, and more that ties with the last of it.
TEST(SamplerOfTheBest, SeesThatOthersTie) {
  std::vector<float> logits(1'000, 1.0f);
  for (size_t i = 0; i < 10; ++i) logits[37 * i] = 2;
  for (const float min_p : {1.0f, std::exp(-1.0f)}) {
    for (const int top_k : {0, 20}) {
      RowWithBest row(logits);
      SamplingOptions options = plain_sampling(4);
      options.top_k = top_k;
      options.min_p = min_p;
      options.logit_bias = {{TokenId{0}, -1.5f}};
      const Sampler sampler(options, 1'000);
      ASSERT_NO_FATAL_FAILURE(expect_same(sampler, row, {}, 3));
      options.logit_bias.clear();
      ASSERT_NO_FATAL_FAILURE(expect_same(Sampler(options, 1'000), row, {}, 3));
      EXPECT_EQ(row.n_asked() > 0, top_k == 0 && min_p < 1);
    }
  }
}

TEST(SamplerOfTheBest, SaysWhichOptionsNeedAll) {
  const auto draws_from_best = [](auto change) {
    SamplingOptions options;
    change(options);
    return Sampler(options, 1'000).draws_from_best();
  };
  EXPECT_TRUE(draws_from_best([](SamplingOptions&) {}));
  EXPECT_TRUE(draws_from_best([](SamplingOptions& o) { o.top_k = 128; }));
  EXPECT_FALSE(draws_from_best([](SamplingOptions& o) { o.top_k = 129; }));
  EXPECT_FALSE(draws_from_best([](SamplingOptions& o) { o.top_k = 0; }));
  EXPECT_TRUE(draws_from_best([](SamplingOptions& o) { o.top_k = 0, o.top_p = 1; }));  // min-p
  EXPECT_FALSE(draws_from_best([](SamplingOptions& o) { o.top_k = 0, o.top_p = 1, o.min_p = 0; }));
  EXPECT_TRUE(draws_from_best([](SamplingOptions& o) { o.temperature = 0, o.top_k = 0; }));
  EXPECT_TRUE(draws_from_best([](SamplingOptions& o) { o.frequency_penalty = 1; }));
  EXPECT_FALSE(draws_from_best([](SamplingOptions& o) { o.frequency_penalty = -1; }));
  EXPECT_FALSE(draws_from_best([](SamplingOptions& o) { o.repeat_penalty = 0.9f; }));
  EXPECT_TRUE(draws_from_best([](SamplingOptions& o) { o.logit_bias = {{TokenId{3}, -1.0f}}; }));
  EXPECT_FALSE(draws_from_best([](SamplingOptions& o) { o.logit_bias = {{TokenId{3}, 1.0f}}; }));
}

}  // namespace
}  // namespace forerun
