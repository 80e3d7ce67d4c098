#include "tune/disco/tuning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace forerun {
namespace {

// Fastest at a threshold of 0.4 and 8 tokens, and more or less slow by text.
double seconds_of(const DiscoRule& rule, size_t text) {
  const double worse = std::abs(rule.threshold - 0.4) + 0.1 * std::abs(std::log2(rule.max_tokens / 8.0));
  return (1 + worse) * (1 + static_cast<double>(text));
}

TEST(Tuning, FindsTheFastest) {
  const DiscoRule rule = tune_disco(7, seconds_of);
  EXPECT_DOUBLE_EQ(rule.threshold, 0.4);
  EXPECT_EQ(rule.max_tokens, 8);
}

TEST(Tuning, NoiseDoesNotMatterMuch) {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> noise(0, 0.05);
  const DiscoRule rule = tune_disco(
      7, [&](const DiscoRule& r, size_t text) { return seconds_of(r, text) * noise(random); });
  EXPECT_LE(seconds_of(rule, 0), 1.1);
}

TEST(Tuning, AllCandidatesAnswerTheSameTexts) {
  std::map<std::pair<double, int>, std::vector<size_t>> texts;
  double share = 0;
  TuningOptions options{.thresholds = {0.2, 0.4, 0.6}, .lengths = {8}, .n_answers = 6};
  options.progress = [&](double now) {
    EXPECT_GT(now, share);
    share = now;
  };
  tune_disco(
      4,
      [&](const DiscoRule& rule, size_t text) {
        texts[{rule.threshold, rule.max_tokens}].push_back(text);
        return seconds_of(rule, text);
      },
      options);
  EXPECT_DOUBLE_EQ(share, 1);
  // Two texts each, then three more for two of them.
  EXPECT_EQ((texts[{0.4, 8}]), (std::vector<size_t>{0, 1, 2, 3, 0}));
  EXPECT_EQ((texts[{0.6, 8}].size() + texts[{0.2, 8}].size()), 7u);
}

TEST(Tuning, EndsWhenTold) {
  int n = 0;
  TuningOptions options;
  options.is_cancelled = [&] { return n >= 10; };
  tune_disco(
      3,
      [&](const DiscoRule& rule, size_t text) {
        ++n;
        return seconds_of(rule, text);
      },
      options);
  EXPECT_EQ(n, 10);
}

}  // namespace
}  // namespace forerun
