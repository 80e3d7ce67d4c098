#include "model/cpu/expert_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace forerun {
namespace {

std::vector<Route> routes_of(const ExpertsConfig& config, std::vector<float> scores,
                             const std::vector<float>& preference = {}) {
  std::vector<Route> routes(static_cast<size_t>(config.n_used));
  choose_experts(config, scores, preference.empty() ? nullptr : preference.data(), routes);
  return routes;
}

TEST(ChooseExperts, TheBestFirstWithTheirPartOfAll) {
  const ExpertsConfig config{.n_all = 4, .n_used = 2, .normalises = false};
  const auto routes = routes_of(config, {0, std::log(4.0f), std::log(2.0f), 0});
  EXPECT_EQ(routes[0].expert, 1);
  EXPECT_NEAR(routes[0].share, 0.5, 1e-6);
  EXPECT_EQ(routes[1].expert, 2);
  EXPECT_NEAR(routes[1].share, 0.25, 1e-6);
}

TEST(ChooseExperts, PartsOfThoseThatAreUsedSumUpToOne) {
  ExpertsConfig config{.n_all = 4, .n_used = 2, .scale = 3.0f};
  auto routes = routes_of(config, {0, std::log(4.0f), std::log(2.0f), 0});
  EXPECT_NEAR(routes[0].share, 2.0, 1e-5);
  EXPECT_NEAR(routes[1].share, 1.0, 1e-5);
  config.gating = ExpertGating::kSoftmaxOfChosen;
  config.normalises = false;
  config.scale = 1;
  routes = routes_of(config, {0, std::log(4.0f), std::log(2.0f), 0});
  EXPECT_NEAR(routes[0].share, 2.0 / 3, 1e-6);
  EXPECT_NEAR(routes[1].share, 1.0 / 3, 1e-6);
}

TEST(ChooseExperts, APreferenceChoosesAndIsNoPart) {
  const ExpertsConfig config{
      .n_all = 3, .n_used = 1, .gating = ExpertGating::kSigmoid, .normalises = false};
  const auto routes = routes_of(config, {2, 0, 1}, {0, 1, 0});
  EXPECT_EQ(routes[0].expert, 1);
  EXPECT_NEAR(routes[0].share, 0.5, 1e-6);
}

TEST(ChooseExperts, DifferentOnesWhateverTheScoresAre) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  for (const auto& scores : std::vector<std::vector<float>>{
           {nan, nan, nan, nan}, {1, 1, 1, 1}, {-inf, nan, inf, 0}, {nan, 1, nan, 2}}) {
    for (const auto gating :
         {ExpertGating::kSoftmax, ExpertGating::kSigmoid, ExpertGating::kSoftmaxOfChosen}) {
      const ExpertsConfig config{.n_all = 4, .n_used = 3, .gating = gating};
      const auto routes = routes_of(config, scores);
      std::vector<bool> used(4);
      for (const Route& route : routes) {
        ASSERT_GE(route.expert, 0);
        ASSERT_LT(route.expert, 4);
        EXPECT_FALSE(used[static_cast<size_t>(route.expert)]);
        used[static_cast<size_t>(route.expert)] = true;
      }
    }
  }
}

TEST(ExpertGroups, EveryRouteHasASlotOfItsExpert) {
  std::mt19937 random(1);
  for (const int together : {1, 2}) {
    for (const int n_rows : {1, 2, 7, 40}) {
      const ExpertGroups::Shape shape{
          .n_rows = n_rows, .n_used = 3, .n_experts = 8, .rows_together = together};
      std::vector<Route> routes;
      for (int row = 0; row < n_rows; ++row) {
        const auto first = static_cast<int32_t>(random() % 8);
        for (int32_t i = 0; i < 3; ++i) routes.push_back({.expert = (first + i * 3) % 8, .share = 1});
      }
      std::vector<int32_t> numbers(static_cast<size_t>(shape.n_numbers()), 77);
      ExpertGroups groups(shape, numbers.data());
      groups.fill(routes);
      int64_t n_routes = 0, slot = 0;
      for (int64_t g = 0; g < groups.n_groups(); ++g) {
        const auto group = groups.group(g);
        EXPECT_GE(group.first_slot, slot) << "groups do not overlap";
        EXPECT_EQ(group.first_slot % together, 0);
        EXPECT_GT(group.n_rows, 0);
        slot = group.first_slot + group.n_rows;
        n_routes += group.n_rows;
      }
      EXPECT_LE(slot, shape.most_slots());
      EXPECT_EQ(n_routes, shape.n_routes());
      for (int row = 0; row < n_rows; ++row) {
        for (int rank = 0; rank < 3; ++rank) {
          const int32_t at = groups.slot_of(row, rank);
          EXPECT_EQ(groups.row_of_slot(at), row);
          for (int64_t g = 0; g < groups.n_groups(); ++g) {
            const auto group = groups.group(g);
            const bool is_inside = at >= group.first_slot && at < group.first_slot + group.n_rows;
            const int32_t expert = routes[static_cast<size_t>(row * 3 + rank)].expert;
            EXPECT_EQ(is_inside, group.expert == expert);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace forerun
