#include "cost/cost_curve.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(CostCurve, InterpolatesWhatWasMeasured) {
  // 4 rows cost less than 3, as with some kernels.
  const CostCurve curve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0.1},
                         {.n_rows = 3, .seconds = 2.0, .seconds_per_token = 0.2},
                         {.n_rows = 4, .seconds = 1.5, .seconds_per_token = 0.2},
                         {.n_rows = 8, .seconds = 4.0, .seconds_per_token = 0.4}});
  EXPECT_DOUBLE_EQ(curve.rows(1), 1.0);
  EXPECT_DOUBLE_EQ(curve.rows(2), 1.5);
  EXPECT_DOUBLE_EQ(curve.rows(4), 1.5);
  EXPECT_DOUBLE_EQ(curve.rows(6), 2.75);
  EXPECT_DOUBLE_EQ(curve.rows(16), 8.0) << "as fast as the last rows";
  EXPECT_DOUBLE_EQ(curve.attention(1, 100), 10.0);
  EXPECT_DOUBLE_EQ(curve.attention(6, 10), 3.0);
  // Two requests with as many tokens each, of which one has a row and the other two.
  EXPECT_DOUBLE_EQ(curve.attention(1.5, 20), curve.attention(1, 10) + curve.attention(2, 10));
}

TEST(BlockCosts, AddUpTheBlocksThatRun) {
  const BlockCosts costs{.attention = 2, .mlp = 3, .rest = 10};
  EXPECT_EQ(costs.of(LayerSet::full(4)), 30);
  EXPECT_EQ(costs.of(LayerSet::none(4)), 10);
  LayerSet some = LayerSet::none(4);
  some.set(attention_block(1), true);
  some.set(mlp_block(3), true);
  some.set(mlp_block(0), true);
  EXPECT_EQ(costs.of(some), 18);
}

}  // namespace
}  // namespace forerun
