#include "cost/pass_costs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace forerun {
namespace {

Calibration first_costs() {
  std::vector<CostPoint> points;
  for (const int n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64}) {
    points.push_back({.n_rows = n, .seconds = 1 + 0.15 * (n - 1), .seconds_per_token = 0.001 * n});
  }
  return {.curve = CostCurve(std::move(points)), .blocks = {.attention = 0.1, .mlp = 0.2, .rest = 0.1}};
}

// A machine that is three times as fast, and whose rows cost next to nothing up to eight.
double truth(int n_rows, int n_context) {
  return (n_rows <= 8 ? 0.3 + 0.005 * n_rows : 0.34 + 0.1 * (n_rows - 8)) + 0.0002 * n_context;
}

TEST(PassCosts, AreWhatIsKnownUntilPassesAreSeen) {
  const PassCosts costs(first_costs());
  EXPECT_DOUBLE_EQ(costs.rows(4), 1.45);
  EXPECT_DOUBLE_EQ(costs.pass(2, 100), 1.15 + 0.2);
  EXPECT_DOUBLE_EQ(costs.pass(2, 100, 3), 1.75 + 0.6);
  EXPECT_DOUBLE_EQ(costs.attention_block(2, 100), 0.1 + 0.05);
  EXPECT_EQ(costs.n_seen(), 0);
}

// Where passes are filled up to powers of two, 33 rows take as long as 64, and say nothing of 32.
TEST(PassCosts, PassesThatAreFilledUpCountAsWhatIsComputed) {
  const auto filled_up = [](int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))); };
  PassCosts costs(first_costs(), PassCosts::Known::kMeasured, filled_up);
  EXPECT_DOUBLE_EQ(costs.rows(33), costs.rows(64));
  EXPECT_LT(costs.rows(32), costs.rows(33));
  for (int i = 0; i < 200; ++i) {
    costs.observe({.n_rows = 32, .n_requests = 32, .n_context = 0, .seconds = 2});
    costs.observe({.n_rows = 34, .n_requests = 32, .n_context = 0, .seconds = 4});
  }
  EXPECT_NEAR(costs.rows(32), 2, 0.1);
  EXPECT_NEAR(costs.rows(34), 4, 0.1);
}

// Of eight requests four have a second row: what that adds to attention is not the fault of twelve rows.
TEST(PassCosts, PassesThatTakeWhatWasExpectedChangeNothing) {
  PassCosts costs(first_costs());
  const double rows = costs.rows(12);
  const double seconds = rows + 4 * costs.attention(1, 100) + 4 * costs.attention(2, 100);
  for (int i = 0; i < 50; ++i)
    costs.observe({.n_rows = 12, .n_requests = 8, .n_context = 800, .seconds = seconds});
  EXPECT_NEAR(costs.rows(12), rows, 1e-9);
  EXPECT_NEAR(costs.attention(1, 100), 0.1, 1e-9);
}

TEST(PassCosts, PassesCorrectAGuess) {
  std::mt19937 random(5);
  PassCosts costs(first_costs(), PassCosts::Known::kGuessed);
  for (int i = 0; i < 400; ++i) {
    const int n_rows = 1 + static_cast<int>(random() % 16);
    const int n_context = static_cast<int>(random() % 200);
    // Now and then something else runs.
    const double seconds = truth(n_rows, n_context) * (random() % 20 == 0 ? 10 : 1);
    costs.observe({.n_rows = n_rows, .n_requests = 1, .n_context = n_context, .seconds = seconds});
  }
  for (const int n_rows : {1, 4, 8, 16}) {
    EXPECT_NEAR(costs.pass(n_rows, 100) / truth(n_rows, 100), 1, 0.3) << n_rows;
  }
  EXPECT_LT(costs.rows(8) / costs.rows(1), 1.3) << "rows are nearly free there";
  EXPECT_NEAR(costs.blocks().mlp, 0.2 * 0.3, 0.02) << "blocks take their part";
  EXPECT_DOUBLE_EQ(costs.learnt().curve.rows(4), costs.rows(4));
}

// What a batch's drafts cost is the difference of two numbers of rows that are seen all the time.
TEST(PassCosts, NeighboursDoNotBlurWhatIsSeenOften) {
  PassCosts costs(first_costs(), PassCosts::Known::kGuessed);
  const auto seconds = [](int n_rows) { return n_rows <= 16 ? 1.0 : 1.6; };
  for (int i = 0; i < 12; ++i) {
    for (const int n_rows : {16, 24, 24, 24}) {  // most passes have drafts
      costs.observe({.n_rows = n_rows, .n_requests = 16, .n_context = 0, .seconds = seconds(n_rows)});
    }
  }
  EXPECT_NEAR(costs.rows(16), 1.0, 0.03);
  EXPECT_NEAR(costs.rows(24), 1.6, 0.03);
}

// Where something else runs beside it, passes take longer, and rows no other part of them.
TEST(PassCosts, RowsThatAreNotSeenFollowTheMachine) {
  for (const auto known : {PassCosts::Known::kGuessed, PassCosts::Known::kMeasured}) {
    PassCosts costs(first_costs(), known);
    double machine = 0.5;
    const auto observe = [&](int n_rows) {
      const double seconds = machine * (1 + 0.1 * (n_rows - 1));
      costs.observe({.n_rows = n_rows, .n_requests = 1, .n_context = 0, .seconds = seconds});
    };
    for (int i = 0; i < 200; ++i) observe(i % 3 == 0 ? 4 : 1);
    for (const double other : {0.8, 0.5, 1.0}) {
      machine = other;
      for (int i = 0; i < 30; ++i) observe(1);
      EXPECT_NEAR(costs.rows(1), machine, 0.02 * machine);
      EXPECT_NEAR(costs.rows(4), machine * 1.3, 0.06 * machine);
    }
  }
}

TEST(PassCosts, OnePassOfAGuessTellsHowFastTheMachineIs) {
  PassCosts costs(first_costs(), PassCosts::Known::kGuessed);
  costs.observe({.n_rows = 1, .n_requests = 1, .n_context = 0, .seconds = 0.01});
  EXPECT_NEAR(costs.rows(1), 0.01, 1e-6);
  EXPECT_LT(costs.rows(16), 0.04);
}

TEST(PassCosts, APassThatTookNoTimeIsForgotten) {
  PassCosts costs(first_costs(), PassCosts::Known::kGuessed);
  const auto observe = [&](double seconds) {
    costs.observe({.n_rows = 1, .n_requests = 1, .n_context = 0, .seconds = seconds});
  };
  observe(0);
  EXPECT_GT(costs.rows(1), 0);
  for (int i = 0; i < 500; ++i) observe(0.01);
  EXPECT_NEAR(costs.rows(1), 0.01, 1e-4);
}

TEST(PassCosts, APromptTellsWhatManyRowsCost) {
  PassCosts guess(first_costs(), PassCosts::Known::kGuessed);
  guess.observe_prompt(128, 4.0);
  guess.observe({.n_rows = 1, .n_requests = 1, .n_context = 0, .seconds = 0.5});
  EXPECT_NEAR(guess.rows(64), 0.5 + 2.0, 0.3) << "weights are read, too";
  for (int i = 0; i < 100; ++i)
    guess.observe({.n_rows = 64, .n_requests = 1, .n_context = 0, .seconds = 6.0});
  EXPECT_NEAR(guess.rows(64), 6.0, 0.1) << "drafts of that size know better";
  guess.observe_prompt(128, 4.0);
  EXPECT_NEAR(guess.rows(64), 6.0, 0.1);
  PassCosts measured(first_costs());
  measured.observe_prompt(128, 4.0);
  EXPECT_DOUBLE_EQ(measured.rows(64), first_costs().curve.rows(64)) << "it was measured better";
}

TEST(PassCosts, UnseenRowsOfAGuessAreTried) {
  PassCosts costs(first_costs(), PassCosts::Known::kGuessed);
  const PassCosts measured(first_costs());
  EXPECT_LT(costs.rows(4), measured.rows(4));
  for (int i = 0; i < 100; ++i) {
    costs.observe({.n_rows = 4, .n_requests = 1, .n_context = 0, .seconds = measured.rows(4)});
  }
  EXPECT_NEAR(costs.rows(4), measured.rows(4), 0.02);
}

TEST(PassCosts, LayersCostWhatTheirPassesTook) {
  PassCosts costs(first_costs());
  const LayerSet layers = LayerSet::first_blocks(4, 4);
  const double expected = costs.pass_with(layers, 50);
  for (int i = 0; i < 200; ++i) costs.observe_layers(layers, 50, 2 * expected);
  EXPECT_NEAR(costs.pass_with(layers, 50), 2 * expected, 0.1 * expected);
  EXPECT_DOUBLE_EQ(costs.rows(1), 1) << "a pass with all layers is another thing";
}

TEST(PassCosts, WhatIsGivenStays) {
  PassCosts costs(first_costs(), PassCosts::Known::kGiven);
  costs.observe({.n_rows = 4, .n_requests = 1, .n_context = 0, .seconds = 100});
  costs.observe_layers(LayerSet::first_blocks(4, 4), 0, 100);
  costs.observe_prompt(128, 100);
  EXPECT_DOUBLE_EQ(costs.rows(4), 1.45);
  EXPECT_EQ(costs.blocks().mlp, 0.2);
}

// Passes with many rows are prepared, which those with few do not tell.
TEST(PassCosts, ReadingCostsWhatItTook) {
  PassCosts costs(first_costs());
  const double expected = costs.reading(64, 100), row = costs.rows(1);
  costs.observe_reading(64, 100, 5 * expected);
  EXPECT_NEAR(costs.reading(64, 100), 5 * expected, 1e-6 * expected);
  for (int i = 0; i < 50; ++i) costs.observe_reading(64, 100, 2 * expected);
  EXPECT_NEAR(costs.reading(64, 100), 2 * expected, 0.01 * expected);
  EXPECT_EQ(costs.rows(1), row);
  PassCosts given(first_costs(), PassCosts::Known::kGiven);
  given.observe_reading(64, 100, 5 * expected);
  EXPECT_NEAR(given.reading(64, 100), expected, 1e-6 * expected);
}

// Until passes with few rows are seen, and no longer.
TEST(PassCosts, RowsThatAreComputedOneByOneTakeWhatAPromptsDo) {
  for (const auto known : {PassCosts::Known::kGuessed, PassCosts::Known::kGuessedRowByRow}) {
    const bool one_by_one = known == PassCosts::Known::kGuessedRowByRow;
    PassCosts costs(first_costs(), known);
    const auto observe = [&](int n_rows, double seconds) {
      for (int i = 0; i < 20; ++i)
        costs.observe({.n_rows = n_rows, .n_requests = 1, .n_context = 0, .seconds = seconds});
    };
    observe(1, 2);
    const double guessed = costs.rows(2);
    costs.observe_prompt(12, 1000);
    EXPECT_DOUBLE_EQ(costs.rows(2), guessed) << "too short to say anything";
    costs.observe_prompt(31, 2 + 30 * 1.5);
    costs.observe_prompt(20, 1000);
    EXPECT_NEAR(costs.rows(2), one_by_one ? 0.9 * (2 + 1.5) : guessed, 1e-2);
    EXPECT_NEAR(costs.rows(4), one_by_one ? 0.9 * (2 + 3 * 1.5) : 0.9 * 2 * 1.45, 1e-2);
    observe(2, 2.2);
    EXPECT_NEAR(costs.rows(2), 2.2, 0.1);
    EXPECT_LT(costs.rows(4), 2 * 1.45 + 0.1) << "rows were seen to be cheaper than a prompt's";
  }
}

}  // namespace
}  // namespace forerun
