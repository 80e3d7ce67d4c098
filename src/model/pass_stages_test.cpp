#include "model/pass_stages.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

std::vector<PassStage> stages_of(const StagePlan& plan, const LayerSet& layers, bool wants_logits) {
  std::vector<PassStage> stages;
  plan_stages(plan, layers, wants_logits, stages);
  return stages;
}

TEST(PassStages, OnePartIsOneStage) {
  const std::vector<int> parts(8, 0);
  for (const LayerSet& layers : {LayerSet::full(4), LayerSet::none(4), LayerSet::first_blocks(4, 3)}) {
    const auto stages = stages_of({.part_of_block = parts, .head_part = 0}, layers, true);
    ASSERT_EQ(stages.size(), 1u);
    EXPECT_EQ(stages[0].layers, layers);
    EXPECT_EQ(stages[0].end, 8);
    EXPECT_TRUE(stages[0].has_head);
  }
}

TEST(PassStages, BlocksThatAreLeftOutPartNoStages) {
  const std::vector<int> parts = {0, 1, 0, 1, 0, 1};
  const StagePlan plan{.part_of_block = parts, .head_part = 0};
  EXPECT_EQ(stages_of(plan, LayerSet::full(3), true).size(), 7u) << "a head apart from the last block";
  EXPECT_EQ(stages_of(plan, LayerSet::full(3), false).size(), 6u);
  LayerSet attention = LayerSet::none(3);
  for (int layer = 0; layer < 3; ++layer) attention.set(attention_block(layer), true);
  const auto stages = stages_of(plan, attention, true);
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].layers, attention);
}

// Every block that runs does so once, in order, on its part; boundaries are shared out without gaps.
TEST(PassStages, StagesAreAWholePass) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const int n_layers = 1 + static_cast<int>(random() % 6);
    std::vector<int> parts;
    LayerSet layers = LayerSet::none(n_layers);
    for (int b = 0; b < 2 * n_layers; ++b) {
      parts.push_back(static_cast<int>(random() % 3));
      layers.set(BlockId{b}, random() % 3 != 0);
    }
    const StagePlan plan{.part_of_block = parts, .head_part = static_cast<int>(random() % 3)};
    const bool wants_logits = random() % 2 == 0;
    const auto stages = stages_of(plan, layers, wants_logits);
    LayerSet computed = LayerSet::none(n_layers);
    int from = 0, last_attention = -1;
    for (size_t s = 0; s < stages.size(); ++s) {
      const PassStage& stage = stages[s];
      for (int b = 0; b < layers.n_blocks(); ++b) {
        if (!stage.layers.runs(BlockId{b})) continue;
        EXPECT_FALSE(computed.runs(BlockId{b}));
        computed.set(BlockId{b}, true);
        EXPECT_EQ(parts[static_cast<size_t>(b)], stage.part);
        EXPECT_GE(b, from);
        EXPECT_LT(b, stage.end);
        EXPECT_GE(b, stage.begin);
        if (b % 2 == 0) last_attention = static_cast<int>(s);
      }
      EXPECT_EQ(stage.has_head, wants_logits && s + 1 == stages.size());
      if (s > 0) {
        EXPECT_NE(stage.part, stages[s - 1].part);
      }
      EXPECT_EQ(stage.begin, s == 0 ? 0 : stages[s - 1].end);
      from = stage.end;
    }
    EXPECT_EQ(computed, layers);
    EXPECT_EQ(from, layers.n_blocks());
    if (wants_logits) {
      EXPECT_EQ(stages.back().part, plan.head_part);
    }
    EXPECT_EQ(last_writing_stage(stages, 1 << 20), last_attention);
  }
}

// Layers 2 and 3 look at the cells of layers 0 and 1.
ModelConfig sharing() {
  ModelConfig config;
  config.n_layers = 4;
  config.window = 8;
  config.layer_is_windowed = {true, false, true, false};
  config.first_sharing_cells = 2;
  return config;
}

TEST(PassStages, AttentionThatIsLeftOutLeavesItsCells) {
  const ModelConfig config = sharing();
  const std::vector<int> parts(8, 0);
  const StagePlan plan{.part_of_block = parts, .head_part = 0, .config = &config};
  const auto leaving = [&](std::initializer_list<BlockId> left_out) {
    const auto stages = stages_of(plan, LayerSet::full(4).without(left_out), true);
    EXPECT_EQ(stages.size(), 1u);
    return stages[0].leaving;
  };
  EXPECT_EQ(leaving({}), LayerSet::none(4));
  LayerSet first = LayerSet::none(4);
  first.set(attention_block(0), true);
  EXPECT_EQ(leaving({attention_block(0), mlp_block(0)}), first);
  EXPECT_EQ(leaving({attention_block(0), attention_block(2)}), LayerSet::none(4)) << "nobody looks";
}

TEST(PassStages, LayersWithoutCellsCanBeAStage) {
  const ModelConfig config = sharing();
  const std::vector<int> parts(8, 0);
  const StagePlan plan{.part_of_block = parts, .head_part = 0, .config = &config, .parts_sharing = true};
  const auto stages = stages_of(plan, LayerSet::full(4), true);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].layers, LayerSet::first_blocks(4, 4));
  EXPECT_FALSE(stages[0].has_head);
  EXPECT_EQ(stages[1].begin, 4);
  EXPECT_TRUE(stages[1].has_head);
  EXPECT_EQ(last_writing_stage(stages, 2), 0);
  // Where the first of them are left out, too.
  const BlockId third[] = {attention_block(2), mlp_block(2)};
  EXPECT_EQ(stages_of(plan, LayerSet::full(4).without(third), true)[1].begin, 6);
}

}  // namespace
}  // namespace forerun
