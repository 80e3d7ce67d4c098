#include "layers/draft_gate.h"

#include <gtest/gtest.h>

#include <limits>

namespace forerun {
namespace {

// A draft with half the blocks costs half of a pass; rows of a pass cost little.
const Calibration kCosts{.curve = CostCurve({{.n_rows = 1, .seconds = 0.1, .seconds_per_token = 0},
                                             {.n_rows = 16, .seconds = 0.2, .seconds_per_token = 0}}),
                         .blocks = {.attention = 0.005, .mlp = 0.005, .rest = 0}};
const DraftPlan kPlan{.layers = LayerSet::first_blocks(10, 6)};  // 0.03 s a token

TEST(DraftGate, LetsThroughWhatPays) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {.n_context = 100});
  for (int i = 0; i < 50; ++i) gate.observe({.n_tested = 5, .n_agreed = 5});
  const auto plan = gate.check(kPlan, {.n_context = 100});
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->layers, kPlan.layers);
  EXPECT_GT(plan->max_tokens, 2);
  EXPECT_EQ(gate.check({.layers = kPlan.layers, .max_tokens = 1}, {.n_context = 100})->max_tokens, 1);
}

TEST(DraftGate, IsShorterWhereDraftsAreWorse) {
  DraftGate good(kCosts), bad(kCosts);
  good.check(kPlan, {});
  bad.check(kPlan, {});
  for (int i = 0; i < 200; ++i) {
    good.observe({.n_tested = 10, .n_agreed = 10});
    bad.observe({.n_tested = 3, .n_agreed = 2});
  }
  EXPECT_GT(good.check(kPlan, {})->max_tokens, bad.check(kPlan, {})->max_tokens);
}

TEST(DraftGate, RefusesWhatDoesNotPayAndTriesEverMoreRarely) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 300; ++i) gate.observe({.n_tested = 1, .n_agreed = 0});
  std::vector<int> tries;
  for (int i = 0; i < 20000; ++i) {
    const auto plan = gate.check(kPlan, {});
    if (!plan) continue;
    EXPECT_LE(plan->max_tokens, 2);
    tries.push_back(i);
    gate.observe({.n_tested = 1, .n_agreed = 0});
  }
  ASSERT_GT(tries.size(), 4u);
  EXPECT_LT(tries.size(), 40u);
  EXPECT_GT(tries.back() - tries[tries.size() - 2], 10 * (tries[1] - tries[0]));
  // It notices when drafts become good.
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 2, .n_agreed = 2});
  EXPECT_GT(gate.check(kPlan, {}).value().max_tokens, 2);
}

TEST(DraftGate, StandsBackForWhatIsBetter) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 5, .n_agreed = 5});
  EXPECT_TRUE(gate.check(kPlan, {.rival = 11}));
  EXPECT_FALSE(gate.check(kPlan, {.rival = 100}));
}

TEST(DraftGate, ForgetsWhenLayersChange) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 300; ++i) gate.observe({.n_tested = 1, .n_agreed = 0});
  EXPECT_FALSE(gate.check(kPlan, {}));
  DraftPlan other = kPlan;
  other.layers = LayerSet::first_blocks(10, 4);
  EXPECT_FALSE(gate.check(other, {})) << "no reason to think that these are better";
  other.layers = LayerSet::first_blocks(10, 5);
  other.agreement = 0.95;
  EXPECT_TRUE(gate.check(other, {}));
}

TEST(DraftGate, LearnsWhatDraftsReallyTake) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 5, .n_agreed = 4});
  ASSERT_TRUE(gate.check(kPlan, {}));
  for (int i = 0; i < 100; ++i) gate.observe_cost(kPlan, 0, 1, 0.1);
  EXPECT_FALSE(gate.check(kPlan, {})) << "as dear as the model itself";
}

TEST(DraftGate, TokensOfOnePassShareItsTime) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 5, .n_agreed = 4});
  for (int i = 0; i < 100; ++i) gate.observe_cost(kPlan, 0, 4, 0.1);
  EXPECT_TRUE(gate.check(kPlan, {})) << "a quarter of what the model itself takes";
}

// Plain decoding has 10 tokens a second, drafts that always agree more than 20.
TEST(DraftGate, ReadsTheTextWhereTheRestOfTheAnswerPaysForIt) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 50; ++i) gate.observe({.n_tested = 5, .n_agreed = 5});
  EXPECT_TRUE(gate.check(kPlan, {.read_seconds = 2, .n_left = 100}));
  for (int i = 0; i < 2000; ++i) {
    EXPECT_FALSE(gate.check(kPlan, {.read_seconds = 2, .n_left = 20}))
        << "they are known: none is tried";
  }
  EXPECT_GT(gate.expected_rate({.read_seconds = 2, .n_left = 100}), 10);
  EXPECT_LT(gate.expected_rate({.read_seconds = 2, .n_left = 20}), 10);
  EXPECT_EQ(gate.expected_rate({.read_seconds = std::numeric_limits<double>::infinity(), .n_left = 0}),
            0);
}

TEST(DraftGate, StakesLittleOnWhatIsNotKnown) {
  DraftGate gate(kCosts);
  const DraftSituation dear{.read_seconds = 2, .n_left = 100};
  EXPECT_FALSE(gate.check(kPlan, dear)) << "a fifth of what is left";
  EXPECT_EQ(gate.expected_rate(dear), 0);
  EXPECT_TRUE(gate.check(kPlan, {.read_seconds = 0.4, .n_left = 100}));
  int n_refusals = 0;
  while (!gate.check(kPlan, dear)) ++n_refusals;
  EXPECT_NEAR(n_refusals * 0.1, 2 / 0.05, 0.5) << "seconds before a twentieth of them is enough";
}

TEST(DraftGate, ReadingForTriesTakesASmallPartOfTheTime) {
  DraftGate gate(kCosts);
  gate.check(kPlan, {});
  for (int i = 0; i < 300; ++i) gate.observe({.n_tested = 1, .n_agreed = 0});
  const double read_seconds = 30;
  double spent = 0, all = 0;
  for (int i = 0; i < 20000; ++i) {
    all += 0.1;
    const auto plan = gate.check(kPlan, {.read_seconds = read_seconds, .n_left = 1000});
    if (!plan) continue;
    EXPECT_TRUE(plan->is_trial);
    spent += read_seconds;
    gate.observe({.n_tested = 1, .n_agreed = 0});
  }
  EXPECT_GT(spent, 0) << "it does try";
  EXPECT_LE(spent, 0.05 * all);
}

// Rows cost little beside a pass only as long as they are few.
TEST(DraftGate, CountsTheRowsOfAllRequests) {
  const Calibration costs{.curve = CostCurve({{.n_rows = 1, .seconds = 0.1, .seconds_per_token = 0},
                                              {.n_rows = 8, .seconds = 0.12, .seconds_per_token = 0},
                                              {.n_rows = 64, .seconds = 1, .seconds_per_token = 0}}),
                          .blocks = {.attention = 0.005, .mlp = 0.005, .rest = 0}};
  DraftGate gate(costs);
  gate.check(kPlan, {});
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 4, .n_agreed = 3});
  EXPECT_TRUE(gate.check(kPlan, {.n_requests = 1}));
  EXPECT_FALSE(gate.check(kPlan, {.n_requests = 16}));
  EXPECT_GT(gate.expected_rate({.n_requests = 1}), 10);
  EXPECT_LT(gate.expected_rate({.n_requests = 16}), 1 / costs.curve.rows(16));
}

TEST(DraftGate, ReadsAheadWhatIsLikelyEnough) {
  const DraftGate gate(kCosts);
  EXPECT_EQ(gate.n_ahead(std::vector<double>{}, 0), 0);
  EXPECT_EQ(gate.n_ahead(std::vector<double>{0.99, 0.98, 0.97}, 0), 3);
  EXPECT_EQ(gate.n_ahead(std::vector<double>{0.9, 0.8, 0.01}, 0), 2);
  EXPECT_EQ(gate.n_ahead(std::vector<double>{0.01}, 0), 0);
}

}  // namespace
}  // namespace forerun
