#include "model/layer_set.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun {
namespace {

TEST(LayerSet, FullRunsEveryBlock) {
  const LayerSet set = LayerSet::full(3);
  EXPECT_EQ(set.n_layers(), 3);
  EXPECT_EQ(set.n_blocks(), 6);
  EXPECT_EQ(set.n_running(), 6);
  EXPECT_TRUE(set.is_full());
  for (int b = 0; b < 6; ++b) EXPECT_TRUE(set.runs(BlockId{b}));
}

TEST(LayerSet, NoneRunsNoBlock) {
  const LayerSet set = LayerSet::none(3);
  EXPECT_EQ(set.n_running(), 0);
  EXPECT_FALSE(set.is_full());
}

TEST(LayerSet, BlocksAlternateBetweenAttentionAndMlp) {
  EXPECT_EQ(attention_block(0), BlockId{0});
  EXPECT_EQ(mlp_block(0), BlockId{1});
  EXPECT_EQ(attention_block(7), BlockId{14});
  EXPECT_EQ(mlp_block(7), BlockId{15});
}

TEST(LayerSet, FirstBlocksIsAnEarlyExit) {
  const LayerSet set = LayerSet::first_blocks(4, 3);
  EXPECT_EQ(set.n_running(), 3);
  EXPECT_TRUE(set.runs(attention_block(0)));
  EXPECT_TRUE(set.runs(mlp_block(0)));
  EXPECT_TRUE(set.runs(attention_block(1)));
  EXPECT_FALSE(set.runs(mlp_block(1)));
  EXPECT_EQ(LayerSet::first_blocks(4, 8), LayerSet::full(4));
  EXPECT_EQ(LayerSet::first_blocks(4, 0), LayerSet::none(4));
}

TEST(LayerSet, WithoutLeavesTheOriginalAlone) {
  const LayerSet full = LayerSet::full(4);
  const std::vector<BlockId> skipped = {attention_block(1), mlp_block(3), attention_block(1)};
  const LayerSet set = full.without(skipped);
  EXPECT_TRUE(full.is_full());
  EXPECT_EQ(set.n_running(), 6);
  EXPECT_FALSE(set.runs(attention_block(1)));
  EXPECT_FALSE(set.runs(mlp_block(3)));
  EXPECT_TRUE(set.runs(mlp_block(1)));
}

TEST(LayerSet, EqualSetsAreEqual) {
  LayerSet a = LayerSet::none(5);
  a.set(mlp_block(2), true);
  LayerSet b = LayerSet::full(5);
  for (int block = 0; block < 10; ++block) b.set(BlockId{block}, BlockId{block} == mlp_block(2));
  EXPECT_EQ(a, b);
  b.set(mlp_block(3), true);
  EXPECT_NE(a, b);
  EXPECT_NE(LayerSet::none(4), LayerSet::none(5)) << "sets of different models differ";
}

TEST(LayerSet, TakesTheLargestModel) {
  const LayerSet set = LayerSet::full(LayerSet::kMaxLayers);
  EXPECT_TRUE(set.runs(mlp_block(LayerSet::kMaxLayers - 1)));
  EXPECT_EQ(set.n_running(), 2 * LayerSet::kMaxLayers);
}

TEST(LayerSetDeathTest, BlocksOfAnotherModelAreBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LayerSet set = LayerSet::full(2);
  EXPECT_DEATH(set.runs(BlockId{4}), "CHECK");
  EXPECT_DEATH(set.set(BlockId{-1}, true), "CHECK");
  EXPECT_DEATH(LayerSet::full(LayerSet::kMaxLayers + 1), "CHECK");
}

}  // namespace
}  // namespace forerun
