#include "optimise/need_posterior.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace forerun {
namespace {

// What follows from the tests for a few items, by going through all cases. The newest test counts
// least faded; here they hardly fade.
std::vector<double> exact_doubts(int n_items, double share,
                                 const std::vector<std::pair<std::vector<int>, double>>& tests) {
  std::vector<double> doubts(static_cast<size_t>(n_items));
  double all = 0;
  for (int set = 0; set < 1 << n_items; ++set) {
    double weight = 1;
    for (int i = 0; i < n_items; ++i) weight *= (set >> i & 1) != 0 ? share : 1 - share;
    for (const auto& [items, evidence] : tests) {
      bool has_needed = false;
      for (const int item : items) has_needed |= (set >> item & 1) != 0;
      weight *= has_needed ? std::exp(evidence) : 1;
    }
    all += weight;
    for (int i = 0; i < n_items; ++i) doubts[static_cast<size_t>(i)] += (set >> i & 1) != 0 ? weight : 0;
  }
  for (double& doubt : doubts) doubt /= all;
  return doubts;
}

TEST(NeedPosterior, IsNearWhatFollowsExactly) {
  const std::vector<std::pair<std::vector<int>, double>> tests = {
      {{0, 1, 2}, 2.5}, {{2, 3}, -1.5}, {{1, 4}, 1.0}, {{0, 4, 5}, -2.0}};
  NeedPosterior posterior(6, 0.3);
  for (const auto& [items, evidence] : tests) posterior.learn(items, evidence);
  const std::vector<double> exact = exact_doubts(6, 0.3, tests);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(posterior.doubt(i), exact[static_cast<size_t>(i)], 0.12) << i;
  }
}

// A group failed; then one of it is found to be needed, and the others are in the clear.
TEST(NeedPosterior, OneNeededItemExplainsAFailure) {
  NeedPosterior posterior(8, 0.25);
  posterior.learn({0, 1, 2}, 4);
  const double suspicious = posterior.doubt(1);
  EXPECT_GT(suspicious, 0.35);
  for (int i = 0; i < 3; ++i) posterior.learn({0}, 4);
  EXPECT_GT(posterior.doubt(0), 0.95);
  EXPECT_LT(posterior.doubt(1), 0.33);
  EXPECT_NEAR(posterior.doubt(7), 0.25, 0.05) << "never tested";
}

TEST(NeedPosterior, ChancesOfGroups) {
  NeedPosterior posterior(20, 0.25);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) posterior.learn({i}, -4);
    posterior.learn({15}, 4);
  }
  const std::vector<int> items = {0, 3, 7, 15, 16};
  const std::vector<double> chances = posterior.none_needed_of_first(items);
  ASSERT_EQ(chances.size(), 6u);
  EXPECT_NEAR(chances[0], 1, 1e-9);
  EXPECT_GT(chances[3], 0.95);
  EXPECT_LT(chances[4], 0.05);
  EXPECT_TRUE(std::is_sorted(chances.rbegin(), chances.rend()));
  EXPECT_EQ(posterior.none_needed(items), chances.back());
}

TEST(NeedPosterior, OldTestsFade) {
  NeedPosterior posterior(4, 0.25);
  posterior.learn({0}, 4);
  EXPECT_GT(posterior.doubt(0), 0.9);
  for (int i = 0; i < 1500; ++i) posterior.learn({1}, -1);
  EXPECT_NEAR(posterior.doubt(0), 0.25, 0.02);
  EXPECT_LE(posterior.to_json().at("tests").size(), 1000u);
}

TEST(NeedPosterior, ComesBack) {
  NeedPosterior posterior(5, 0.25);
  posterior.learn({0, 1}, 3);
  posterior.learn({1, 4}, -1);
  NeedPosterior restored(5, 0.25);
  restored.restore(posterior.to_json());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(restored.doubt(i), posterior.doubt(i));
  nlohmann::ordered_json damaged = posterior.to_json();
  damaged["tests"][0][1][0] = 5;
  EXPECT_THROW(restored.restore(damaged), Error);
  EXPECT_THROW(NeedPosterior(6, 0.25).restore(posterior.to_json()), Error);
}

}  // namespace
}  // namespace forerun
