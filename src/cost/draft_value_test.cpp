#include "cost/draft_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace forerun {
namespace {

// A pass takes 10, whatever its rows, and 1 more for each 100 tokens of context and row.
PassCosts flat() {
  return PassCosts({.curve = CostCurve({{.n_rows = 1, .seconds = 10, .seconds_per_token = 0.01},
                                        {.n_rows = 64, .seconds = 10, .seconds_per_token = 0.64}}),
                    .blocks = {.attention = 1, .mlp = 1, .rest = 2}});
}

TEST(DraftValue, CostsAreThoseOfTheBlocksThatRun) {
  LayerSet layers = LayerSet::full(4);
  EXPECT_DOUBLE_EQ(flat().pass_with(layers, 0), 10);
  EXPECT_DOUBLE_EQ(flat().pass_with(layers, 100), 11);
  layers.set(attention_block(1), false);
  layers.set(attention_block(2), false);
  layers.set(mlp_block(2), false);
  EXPECT_DOUBLE_EQ(flat().pass_with(layers, 100), 7.5) << "half of the attention is left";
}

TEST(DraftValue, IsTheBestOfAllLengths) {
  for (const double agreement : {0.0, 0.3, 0.7, 0.95, 1.0}) {
    for (const double seconds : {0.1, 2.0, 5.0, 20.0}) {
      for (const int n_context : {0, 200}) {
        const DraftValue found = best_draft(flat(), agreement, seconds, n_context, {.max = 12});
        double best = 0;
        int best_n = 0;
        for (int n = 0; n <= 12; ++n) {
          double tokens = 0;
          for (int i = 0; i <= n; ++i) tokens += std::pow(agreement, i);
          const double rate = tokens / (n * seconds + 10 + 0.01 * n_context * (n + 1));
          if (rate > best * (1 + 1e-12)) best = rate, best_n = n;
        }
        EXPECT_EQ(found.n_tokens, best_n) << agreement << ", " << seconds;
        EXPECT_NEAR(found.tokens_per_second, best, 1e-12);
      }
    }
  }
  EXPECT_EQ(best_draft(flat(), 0.5, 20, 0).n_tokens, 0) << "drafting costs more than it brings";
  EXPECT_EQ(best_draft(flat(), 0.5, 20, 0, {.min = 2}).n_tokens, 2);
}

TEST(DraftValue, SpeedupIsOverPlainDecoding) {
  const LayerSet none = LayerSet::none(4);
  const auto speedup = [&](const LayerSet& layers, double agreement, int n_seen) {
    return draft_speedup(flat(), layers, {.agreement = agreement, .n_seen = n_seen, .n_context = 0});
  };
  // 25 tokens for 2 each and a pass of 10, where plain decoding takes 10 a token.
  EXPECT_NEAR(speedup(none, 1, 1000000000), 26 * 10 / 60.0, 1e-6);
  EXPECT_LT(speedup(none, 1, 8), speedup(none, 1, 800)) << "few tokens tell little";
  EXPECT_LT(speedup(LayerSet::full(4), 1, 800), 1.0);
  EXPECT_LT(speedup(LayerSet::full(4), 0.1, 800), speedup(LayerSet::full(4), 0.5, 800))
      << "the way up shows where nothing pays";
}

TEST(DraftValue, RowsAreReadWhileTheyPay) {
  const PassCosts costs({.curve = CostCurve({{.n_rows = 1, .seconds = 10, .seconds_per_token = 0},
                                             {.n_rows = 11, .seconds = 20, .seconds_per_token = 0}}),
                         .blocks = {}});
  // The second token brings 0.5 for 1 more than 11; the third 0.05.
  EXPECT_EQ(best_rows(costs, std::vector<double>{0.8, 0.5, 0.05}, 0), 2);
  EXPECT_EQ(best_rows(costs, std::vector<double>{0.05}, 0), 0);
  EXPECT_EQ(best_rows(costs, {}, 0), 0);
}

}  // namespace
}  // namespace forerun
