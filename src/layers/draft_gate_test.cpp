#include "layers/draft_gate.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

// A draft with half the blocks costs half of a pass; rows of a pass cost little.
const Calibration kCosts{.curve = CostCurve({{.n_rows = 1, .seconds = 0.1, .seconds_per_token = 0},
                                             {.n_rows = 16, .seconds = 0.2, .seconds_per_token = 0}}),
                         .blocks = {.attention = 0.005, .mlp = 0.005, .rest = 0}};
const DraftPlan kPlan{.layers = LayerSet::first_blocks(10, 6)};  // 0.03 s a token

TEST(DraftGate, LetsThroughWhatPays) {
  DraftGate gate(kCosts);
  gate.check(kPlan, 100, 0);
  for (int i = 0; i < 50; ++i) gate.observe({.n_tested = 5, .n_agreed = 5});
  const auto plan = gate.check(kPlan, 100, 0);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->layers, kPlan.layers);
  EXPECT_GT(plan->max_tokens, 2);
  EXPECT_EQ(gate.check({.layers = kPlan.layers, .max_tokens = 1}, 100, 0)->max_tokens, 1);
}

TEST(DraftGate, IsShorterWhereDraftsAreWorse) {
  DraftGate good(kCosts), bad(kCosts);
  good.check(kPlan, 0, 0);
  bad.check(kPlan, 0, 0);
  for (int i = 0; i < 200; ++i) {
    good.observe({.n_tested = 10, .n_agreed = 10});
    bad.observe({.n_tested = 3, .n_agreed = 2});
  }
  EXPECT_GT(good.check(kPlan, 0, 0)->max_tokens, bad.check(kPlan, 0, 0)->max_tokens);
}

TEST(DraftGate, RefusesWhatDoesNotPayAndTriesEverMoreRarely) {
  DraftGate gate(kCosts);
  gate.check(kPlan, 0, 0);
  for (int i = 0; i < 300; ++i) gate.observe({.n_tested = 1, .n_agreed = 0});
  std::vector<int> tries;
  for (int i = 0; i < 20000; ++i) {
    const auto plan = gate.check(kPlan, 0, 0);
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
  EXPECT_GT(gate.check(kPlan, 0, 0).value().max_tokens, 2);
}

TEST(DraftGate, StandsBackForWhatIsBetter) {
  DraftGate gate(kCosts);
  gate.check(kPlan, 0, 0);
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 5, .n_agreed = 5});
  EXPECT_TRUE(gate.check(kPlan, 0, 11));
  EXPECT_FALSE(gate.check(kPlan, 0, 100));
}

TEST(DraftGate, ForgetsWhenLayersChange) {
  DraftGate gate(kCosts);
  gate.check(kPlan, 0, 0);
  for (int i = 0; i < 300; ++i) gate.observe({.n_tested = 1, .n_agreed = 0});
  EXPECT_FALSE(gate.check(kPlan, 0, 0));
  DraftPlan other = kPlan;
  other.layers = LayerSet::first_blocks(10, 4);
  EXPECT_FALSE(gate.check(other, 0, 0)) << "no reason to think that these are better";
  other.layers = LayerSet::first_blocks(10, 5);
  other.agreement = 0.95;
  EXPECT_TRUE(gate.check(other, 0, 0));
}

TEST(DraftGate, LearnsWhatDraftsReallyTake) {
  DraftGate gate(kCosts);
  gate.check(kPlan, 0, 0);
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 5, .n_agreed = 4});
  ASSERT_TRUE(gate.check(kPlan, 0, 0));
  for (int i = 0; i < 100; ++i) gate.observe_cost(kPlan, 0, 1, 0.1);
  EXPECT_FALSE(gate.check(kPlan, 0, 0)) << "as dear as the model itself";
}

TEST(DraftGate, TokensOfOnePassShareItsTime) {
  DraftGate gate(kCosts);
  gate.check(kPlan, 0, 0);
  for (int i = 0; i < 100; ++i) gate.observe({.n_tested = 5, .n_agreed = 4});
  for (int i = 0; i < 100; ++i) gate.observe_cost(kPlan, 0, 4, 0.1);
  EXPECT_TRUE(gate.check(kPlan, 0, 0)) << "a quarter of what the model itself takes";
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
