#include "sampling/vocab_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/odd_floats.h"

namespace forerun {
namespace {

enum class Kind { kSmooth, kManyTies, kWithInvalid };

std::vector<float> random_logits(size_t n, Kind kind, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(n);
  for (float& x : logits) {
    x = normal(random);
    if (kind == Kind::kManyTies) x = std::round(x);
    if (kind == Kind::kWithInvalid && random() % 3 == 0) x = random() % 2 == 0 ? kNan : -kInf;
  }
  return logits;
}

std::vector<ScoredToken> sorted_tokens(const std::vector<float>& logits) {
  std::vector<ScoredToken> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInf) all.push_back({logits[i], TokenId{static_cast<int32_t>(i)}});
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<TokenId> tokens_of(const std::vector<ScoredToken>& scored) {
  std::vector<TokenId> tokens;
  for (const ScoredToken& s : scored) tokens.push_back(s.token);
  return tokens;
}

std::vector<TokenId> sorted_tokens_of(std::vector<ScoredToken> scored) {
  std::sort(scored.begin(), scored.end());
  return tokens_of(scored);
}

class VocabOps : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Logits, VocabOps,
                         testing::Values(Kind::kSmooth, Kind::kManyTies, Kind::kWithInvalid));

TEST_P(VocabOps, ArgmaxAndLargestEqualTheSort) {
  std::mt19937 random(1);
  for (size_t n : {1u, 2u, 15u, 31u, 32u, 33u, 255u, 256u, 257u, 1'000u, 4'097u}) {
    for (int round = 0; round < 20; ++round) {
      const auto logits = random_logits(n, GetParam(), random);
      const auto sorted = sorted_tokens(logits);
      EXPECT_EQ(argmax(logits), sorted.empty() ? std::nullopt : std::optional(sorted.front().token));
      EXPECT_EQ(largest(logits), sorted.empty() ? -kInf : sorted.front().logit);
      EXPECT_EQ(has_excluded(logits), sorted.size() < n);
    }
  }
}

TEST_P(VocabOps, SelectionsEqualTheSort) {
  std::mt19937 random(2);
  SelectionScratch scratch;
  std::vector<ScoredToken> out;
  for (size_t n : {1u, 40u, 257u, 5'000u, 50'000u}) {
    const auto logits = random_logits(n, GetParam(), random);
    const auto sorted = sorted_tokens(logits);
    for (size_t k : {1u, 2u, 40u, 300u, 5'000u, 100'000u}) {
      select_top(logits, k, scratch, out);
      EXPECT_EQ(tokens_of(out),
                tokens_of({sorted.begin(), sorted.begin() + std::min(k, sorted.size())}));
    }
    for (float threshold : {5.0f, 0.0f, -3.0f, -kInf}) {
      select_at_least(logits, threshold, out);
      EXPECT_TRUE(
          std::is_sorted(out.begin(), out.end(), [](auto& a, auto& b) { return a.token < b.token; }));
      const auto end =
          std::find_if(sorted.begin(), sorted.end(), [&](auto& s) { return s.logit < threshold; });
      EXPECT_EQ(sorted_tokens_of(out), tokens_of({sorted.begin(), end}));
    }
  }
}

TEST_P(VocabOps, SelectMassEqualsTheCumulativeSum) {
  std::mt19937 random(3);
  SelectionScratch scratch;
  std::vector<ScoredToken> out;
  for (size_t n : {3u, 257u, 5'000u}) {
    const auto logits = random_logits(n, GetParam(), random);
    const auto sorted = sorted_tokens(logits);
    if (sorted.empty()) continue;
    const float max = sorted.front().logit;
    const double total = sum_exp(logits, max, 1.0f);
    for (float share : {0.001f, 0.1f, 0.5f, 0.9f, 0.999f}) {
      select_mass(logits, {share, max, total}, scratch, out);
      double sum = 0;
      size_t expected = 0;
      while (expected < sorted.size() && sum / total < static_cast<double>(share)) {
        sum += std::exp(static_cast<double>(sorted[expected++].logit - max));
      }
      EXPECT_EQ(sorted_tokens_of(out), tokens_of({sorted.begin(), sorted.begin() + expected})) << share;
    }
  }
}

TEST_P(VocabOps, SumExpAndLogSoftmaxEqualDouble) {
  std::mt19937 random(4);
  for (size_t n : {5u, 255u, 256u, 1'000u, 70'000u}) {
    const auto logits = random_logits(n, GetParam(), random);
    const float max = largest(logits);
    if (max == -kInf) continue;
    for (float temperature : {0.3f, 1.0f, 2.0f}) {
      double expected = 0;
      for (float x : logits) {
        if (x > -kInf)
          expected += std::exp(static_cast<double>(x - max) / static_cast<double>(temperature));
      }
      EXPECT_NEAR(sum_exp(logits, max, temperature) / expected, 1, 1e-6);
      std::vector<float> out(n);
      log_softmax(logits, max, temperature, out);
      for (size_t i = 0; i < n; ++i) {
        if (!(logits[i] > -kInf)) {
          EXPECT_EQ(out[i], -kInf);
        } else {
          EXPECT_NEAR(out[i], (logits[i] - max) / temperature - std::log(static_cast<float>(expected)),
                      1e-5f);
        }
      }
    }
  }
}

TEST_P(VocabOps, SoftmaxSumsEqualDouble) {
  std::mt19937 random(5);
  for (size_t n : {5u, 256u, 1'000u, 70'000u}) {
    const auto logits = random_logits(n, GetParam(), random);
    const float max = largest(logits);
    if (max == -kInf) continue;
    const SoftmaxSums sums = softmax_sums(logits);
    EXPECT_EQ(sums.max, max);
    EXPECT_NEAR(sums.total / sum_exp(logits, max, 1.0f), 1, 1e-6);
    double entropy = 0, all = 0;
    for (float x : logits) {
      all += sums.probability(x);
      if (!(x > -kInf)) continue;
      const double log_probability = static_cast<double>(x - max) - std::log(sums.total);
      entropy -= std::exp(log_probability) * log_probability;
    }
    EXPECT_NEAR(all, 1, 1e-5);
    EXPECT_NEAR(sums.entropy, entropy, 1e-5 * (1 + entropy));
  }
}

TEST(VocabOpsSpecial, SoftmaxSumsTakeInfinityForTheLargestNumber) {
  const std::vector<float> logits = {1, kInf, kNan, -kInf, kInf};
  const SoftmaxSums sums = softmax_sums(logits);
  EXPECT_NEAR(sums.total, 2, 1e-6);
  EXPECT_NEAR(sums.probability(kInf), 0.5, 1e-6);
  EXPECT_NEAR(sums.entropy, std::log(2.0), 1e-6);
}

// Golden value: the sum has the same bits on every machine, compiler and instruction set.
TEST(VocabOpsDeterminism, SumExpHasTheSameBitsEverywhere) {
  std::vector<float> logits(10'007);
  uint32_t state = 1;
  for (float& x : logits) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-20f;  // 0 to 16
  }
  const double sum = sum_exp(logits, largest(logits), 0.7f);
  uint64_t bits;
  std::memcpy(&bits, &sum, sizeof(bits));
  EXPECT_EQ(bits, 0x407A87AD45250DABu) << sum;
}

TEST(VocabOpsFit, CutsAndFillsUp) {
  const std::vector<float> logits{1, 2, 3};
  std::vector<float> memory;
  EXPECT_EQ(fit_logits(logits, 2, memory).size(), 2u);
  EXPECT_EQ(fit_logits(logits, 3, memory).data(), logits.data());
  const auto filled = fit_logits(logits, 5, memory);
  EXPECT_EQ(std::vector<float>(filled.begin(), filled.end()),
            (std::vector<float>{1, 2, 3, -kInf, -kInf}));
}

TEST(VocabOpsClean, ReplacesWhatIsNoNumber) {
  std::vector<float> out;
  copy_clean(std::vector<float>{1.5f, kNan, kInf, -kInf, -kNan}, out);
  EXPECT_EQ(out, (std::vector<float>{1.5f, -kInf, std::numeric_limits<float>::max(), -kInf, -kInf}));
}

TEST(VocabOpsClean, EqualsTheScalarFormAtAnyLength) {
  std::mt19937 random(5);
  const auto logits = random_logits(1'000, Kind::kWithInvalid, random);
  std::vector<float> out;
  for (size_t n = 0; n < 100; ++n) {
    copy_clean(std::span(logits).first(n), out);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(out[i], clean(logits[i]));
  }
}

}  // namespace
}  // namespace forerun
