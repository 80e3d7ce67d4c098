#include "stopping/thresholds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "stopping/rules.h"
#include "stopping/test_token.h"

namespace forerun {
namespace {

using test::drafted;

// How many tokens a rule drafts, of these probabilities.
int length(StoppingRule& rule, std::vector<double> probabilities) {
  for (size_t i = 0; i < probabilities.size(); ++i) {
    DraftedToken token = drafted(static_cast<int>(i) + 1, probabilities[i]);
    token.probabilities = std::span(probabilities).first(i + 1);
    if (!rule.goes_on(token)) return static_cast<int>(i) + 1;
  }
  return static_cast<int>(probabilities.size()) + 1;  // it would go on
}

std::unique_ptr<StoppingRule> made(StoppingOptions options) {
  return make_stopping_rule(options, {});
}

TEST(FixedLength, IsTheSameEachTime) {
  const auto rule = made({.rule = "fixed", .tokens = 3});
  EXPECT_EQ(length(*rule, std::vector<double>(8, 0.1)), 3);
  rule->observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 3});
  EXPECT_EQ(length(*rule, std::vector<double>(8, 0.1)), 3);
}

TEST(HeuristicLength, FollowsThePublishedRule) {
  const auto rule = made({.rule = "heuristic", .tokens = 5});
  const auto now = [&] { return length(*rule, std::vector<double>(20, 0.1)); };
  EXPECT_EQ(length(*rule, std::vector<double>(20, 0.1)), 5);
  rule->observe({.n_tested = 5, .n_agreed = 5, .n_drafted = 5});
  EXPECT_EQ(length(*rule, std::vector<double>(20, 0.1)), 7);
  rule->observe({.n_tested = 3, .n_agreed = 2, .n_drafted = 7});
  EXPECT_EQ(length(*rule, std::vector<double>(20, 0.1)), 6);
  EXPECT_EQ(now(), 6) << "another request goes on there";
  rule->observe({.n_tested = 2, .n_agreed = 2, .n_drafted = 2});
  EXPECT_EQ(now(), 6) << "a short draft that was taken is no failure, and no reason";
  for (int i = 0; i < 20; ++i) rule->observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 5});
  EXPECT_EQ(now(), 1);
  rule->observe({});
  EXPECT_EQ(now(), 1) << "no draft, no verdict";
}

TEST(ConfidenceThreshold, StopsBehindAnUnlikelyToken) {
  const auto rule = made({.rule = "confidence", .threshold = 0.4});
  EXPECT_EQ(length(*rule, {0.9, 0.4, 0.39, 0.9}), 3);
}

// The rule as the paper's program has it, for one draft.
double published(double threshold, double& accepted, const ChainOutcome& outcome) {
  accepted = 0.5 * accepted + 0.5 * outcome.n_agreed / outcome.n_drafted;
  const double wanted = accepted < 0.9        ? threshold + 0.01
                        : !outcome.is_longest ? threshold - 0.01
                                              : threshold;
  return 0.9 * threshold + 0.1 * wanted;
}

TEST(AdaptiveThreshold, FollowsThePublishedRule) {
  AdaptiveThreshold threshold(0.6);
  double expected = 0.6, accepted = 0;
  for (int i = 0; i < 200; ++i) {
    const int n_drafted = 1 + i % 12;
    const ChainOutcome outcome{.n_tested = n_drafted,
                               .n_agreed = i % 3 == 0 ? n_drafted / 2 : n_drafted,
                               .n_drafted = n_drafted,
                               .is_longest = n_drafted == 12};
    threshold.observe(outcome);
    expected = published(expected, accepted, outcome);
    ASSERT_NEAR(threshold.value(), expected, 1e-12) << i;
  }
}

TEST(AdaptiveThreshold, MovesTheRightWay) {
  AdaptiveThreshold bad(0.6), good(0.6), full(0.6);
  for (int i = 0; i < 20; ++i) {
    bad.observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 4});
    good.observe({.n_tested = 4, .n_agreed = 4, .n_drafted = 4});
    full.observe({.n_tested = 12, .n_agreed = 12, .n_drafted = 12, .is_longest = true});
  }
  EXPECT_NEAR(bad.value(), 0.62, 1e-9) << "0.001 a draft";
  EXPECT_LT(good.value(), 0.6);
  EXPECT_LT(full.value(), bad.value());
  EXPECT_GT(full.value(), good.value()) << "longer drafts there are none";
}

TEST(AdaptiveThreshold, StaysAProbability) {
  AdaptiveThreshold bad(0.999), good(0.0);
  for (int i = 0; i < 2000; ++i) {
    bad.observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 2});
    good.observe({.n_tested = 2, .n_agreed = 2, .n_drafted = 2});
    bad.observe({});
  }
  EXPECT_EQ(bad.value(), 1.0);
  EXPECT_GE(good.value(), 0.0);
}

TEST(AdaptiveConfidence, StopsBelowItsThreshold) {
  const auto rule = made({.rule = "adaptive", .threshold = 0.5});
  EXPECT_EQ(length(*rule, {0.6, 0.505, 0.4}), 3);
  for (int i = 0; i < 10; ++i) rule->observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 4});
  EXPECT_EQ(length(*rule, {0.6, 0.505, 0.4}), 2);
}

// A token of this probability was taken or not.
void see(RocThreshold& threshold, double probability, bool agreed) {
  threshold.observe({.n_tested = 1,
                     .n_agreed = agreed ? 1 : 0,
                     .n_drafted = 1,
                     .probabilities = std::span(&probability, 1)});
}

// By its definition: of all thresholds, the one with the least cost.
TEST(RocThreshold, IsTheCheapestSoFar) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform;
  RocThreshold threshold(0.4);
  std::vector<std::pair<double, bool>> seen;
  for (int i = 0; i < 300; ++i) {
    const double p = std::round(100 * uniform(random)) / 100;
    const bool agreed = uniform(random) < p;
    see(threshold, p, agreed);
    seen.emplace_back(p, agreed);
    double n_good = 0, n_bad = 0;
    for (const auto& [q, good] : seen) (good ? n_good : n_bad) += 1;
    if (seen.size() <= 5 || n_good == 0 || n_bad == 0) {
      EXPECT_EQ(threshold.value(), 0.4);
      continue;
    }
    const auto cost = [&](double at) {
      double n_vain = 0, n_missed = 0;
      for (const auto& [q, good] : seen) {
        if (good && q < at) ++n_missed;
        if (!good && q >= at) ++n_vain;
      }
      return n_vain / n_bad + 3 * n_missed / n_good;
    };
    for (int at = 0; at <= 100; ++at) ASSERT_LE(cost(threshold.value()), cost(at / 100.0) + 1e-9) << i;
  }
}

TEST(RocThreshold, FollowsWhenDraftsChange) {
  RocThreshold threshold(0.4);
  for (int i = 0; i < 600; ++i) see(threshold, 0.2 + 0.2 * (i % 2), i % 2 == 1);
  EXPECT_NEAR(threshold.value(), 0.4, 1e-9);
  for (int i = 0; i < 600; ++i) see(threshold, 0.7 + 0.2 * (i % 2), i % 2 == 1);
  EXPECT_NEAR(threshold.value(), 0.9, 1e-9) << "old tokens are forgotten";
}

TEST(RocConfidence, LearnsFromTestedTokens) {
  const auto rule = made({.rule = "roc", .threshold = 0.4});
  const std::vector<double> probabilities = {0.95, 0.6};
  for (int i = 0; i < 40; ++i) {
    rule->observe({.n_tested = 2, .n_agreed = 1, .n_drafted = 2, .probabilities = probabilities});
  }
  EXPECT_EQ(length(*rule, {0.95, 0.6, 0.9}), 2) << "tokens like the second were never taken";
}

TEST(PerplexityThreshold, IsOfTheWholeDraft) {
  const auto rule = made({.rule = "perplexity", .perplexity = 2.0});
  EXPECT_EQ(length(*rule, {0.5, 0.5, 0.5}), 4) << "just 2";
  EXPECT_EQ(length(*rule, {0.9, 0.9, 0.1}), 3) << "9 of the tokens before do not outweigh it";
  EXPECT_EQ(length(*rule, {0.99, 0.3, 0.9}), 4) << "a sure one before a doubtful one does";
  EXPECT_EQ(length(*rule, {0.0}), 1);
}

TEST(Oracle, StopsBehindWhatIsNotTaken) {
  const auto lookahead = made({.rule = "oracle"});
  DraftedToken token = drafted(1, 0.9);
  EXPECT_FALSE(lookahead->goes_on(token)) << "nothing is known";
  token.known = token.token;
  EXPECT_TRUE(lookahead->goes_on(token));
  token.known = TokenId{77};
  EXPECT_FALSE(lookahead->goes_on(token));
}

}  // namespace
}  // namespace forerun
