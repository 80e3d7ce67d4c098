#include "model/layer_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace forerun {
namespace {

using testing::ElementsAre;

constexpr size_t kPlenty = size_t{1} << 40;

// Ten layers of 100 bytes, which take 10 more of the cache, 5 for a single text.
PartSizes ten_layers() {
  return {.layers = std::vector<size_t>(10, 100),
          .head = 50,
          .stays = 70,
          .cache = 10,
          .least_cache = 5,
          .passes = 20};
}

std::vector<int> counts(const LayerChoice& choice, const std::vector<size_t>& free_bytes) {
  return plan_layers(ten_layers(), choice, free_bytes, kPlenty).on_device;
}

TEST(LayerPlan, GivesAllToADeviceThatHasRoomForThemAndOneText) {
  const size_t needed = 10 * 105 + 50 + 20;
  EXPECT_THAT(counts({}, {needed}), ElementsAre(11));
  EXPECT_THAT(counts({}, {needed, kPlenty}), ElementsAre(11, 0));
  EXPECT_LT(counts({}, {needed - 1})[0], 11);
}

TEST(LayerPlan, GivesADeviceTheLastLayersThatFit) {
  // The head, four layers with their cache, and the passes.
  const size_t needed = 50 + 4 * 110 + 20;
  const std::vector<size_t> free_bytes{needed};
  const LayerPlan plan = plan_layers(ten_layers(), {}, free_bytes, kPlenty);
  EXPECT_EQ(plan, (LayerPlan{.n_on_cpu = 6, .on_device = {5}}));
  EXPECT_THAT(counts({}, {needed - 1}), ElementsAre(4));
}

TEST(LayerPlan, GivesNothingToADeviceWithoutRoomForALayer) {
  const std::vector<size_t> free_bytes{100};
  const LayerPlan plan = plan_layers(ten_layers(), {}, free_bytes, kPlenty);
  EXPECT_EQ(plan, (LayerPlan{.n_on_cpu = 10, .on_device = {0}}));
}

TEST(LayerPlan, LeavesAllWithTheCpuWhereThereIsNothingElse) {
  EXPECT_EQ(plan_layers(ten_layers(), {}, {}, kPlenty), (LayerPlan{.n_on_cpu = 10, .on_device = {}}));
}

TEST(LayerPlan, SharesByFreeMemory) {
  const LayerChoice choice{.prefers_first = false};
  // The head takes half a layer, and goes where the last layer is.
  EXPECT_THAT(counts(choice, {kPlenty, kPlenty}), ElementsAre(5, 6));
  EXPECT_THAT(counts(choice, {3 * kPlenty, kPlenty}), ElementsAre(8, 3));
  EXPECT_THAT(counts(choice, {kPlenty, 0}), ElementsAre(11, 0));
}

TEST(LayerPlan, DoesAsItIsTold) {
  EXPECT_THAT(counts({.n_gpu_layers = 3}, {0}), ElementsAre(4));
  EXPECT_THAT(counts({.n_gpu_layers = 0}, {kPlenty}), ElementsAre(0));
  EXPECT_THAT(counts({.n_gpu_layers = 99}, {0}), ElementsAre(11));
  EXPECT_THAT(counts({.n_gpu_layers = 10, .split = {1, 1}}, {0, kPlenty}), ElementsAre(5, 6));
  EXPECT_THAT(counts({.n_gpu_layers = 8, .split = {1, 3}}, {kPlenty, 0}), ElementsAre(2, 7));
  EXPECT_THAT(counts({.split = {0, 1, 0}}, {kPlenty, kPlenty, kPlenty}), ElementsAre(0, 11, 0));
}

TEST(LayerPlan, AShareThatDoesNotFitLeavesMoreWithTheCpu) {
  const std::vector<int> shared = counts({.split = {1, 1}}, {400, kPlenty});
  EXPECT_THAT(shared, ElementsAre(3, 5))
      << "three layers of 110 and the passes fit into 400, four do not";
}

TEST(LayerPlan, KnowsWhenWeightsAndATextExceedTheCpusMemory) {
  const size_t all = 70 + 10 * (100 + 5) + 50;
  EXPECT_FALSE(plan_layers(ten_layers(), {}, {}, all).exceeds_memory);
  EXPECT_TRUE(plan_layers(ten_layers(), {}, {}, all - 1).exceeds_memory);
  const std::vector<size_t> free_bytes{kPlenty};
  // Seven layers and what always stays: the head is elsewhere.
  const LayerChoice three{.n_gpu_layers = 3};
  EXPECT_FALSE(plan_layers(ten_layers(), three, free_bytes, 805).exceeds_memory);
  EXPECT_TRUE(plan_layers(ten_layers(), three, free_bytes, 804).exceeds_memory);
}

TEST(LayerPlan, WhatItGivesFitsAndNoneIsLost) {
  std::mt19937 random(7);
  const auto up_to = [&](size_t most) { return std::uniform_int_distribution<size_t>(0, most)(random); };
  for (int round = 0; round < 500; ++round) {
    PartSizes sizes{.head = up_to(300), .cache = up_to(30), .passes = up_to(100)};
    for (size_t i = 0; i < 1 + up_to(30); ++i) sizes.layers.push_back(1 + up_to(200));
    std::vector<size_t> free_bytes;
    for (size_t i = 0; i < 1 + up_to(3); ++i) free_bytes.push_back(up_to(4000));
    const LayerPlan plan = plan_layers(sizes, {.prefers_first = false}, free_bytes, kPlenty);

    const auto n_layers = static_cast<int>(sizes.layers.size());
    const int n_there = std::reduce(plan.on_device.begin(), plan.on_device.end());
    EXPECT_EQ(plan.n_on_cpu + n_there, n_there > 0 ? n_layers + 1 : n_layers);
    size_t next = static_cast<size_t>(plan.n_on_cpu);
    for (size_t d = 0; d < free_bytes.size(); ++d) {
      size_t n_bytes = plan.on_device[d] > 0 ? sizes.passes : 0;
      for (int i = 0; i < plan.on_device[d]; ++i, ++next) {
        n_bytes += next < sizes.layers.size() ? sizes.layers[next] + sizes.cache : sizes.head;
      }
      EXPECT_LE(n_bytes, free_bytes[d]);
    }
  }
}

}  // namespace
}  // namespace forerun
