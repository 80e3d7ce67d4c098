// Which experts rows choose, against double precision, and how routes are grouped.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/cuda/device_array.h"
#include "model/cuda/experts.h"
#include "model/cuda/experts_fixtures.h"

namespace forerun::cuda {
namespace {

class RoutingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};

// What is chosen for rows, as read from the device.
struct Routes {
  ExpertsShape shape;
  Floats shares;
  std::vector<int32_t> places, experts, columns;

  int expert_of(int route) const {
    return experts[static_cast<size_t>(places[static_cast<size_t>(route)] / shape.width())];
  }
};

Routes run(const Floats& scores, int n_scores, int n_rows, const ExpertsConfig& config,
           const Floats& preference) {
  const ExpertsShape shape{.n_rows = n_rows, .n_used = config.n_used, .n_experts = config.n_all};
  const DeviceArray<float> scores_on(scores), preference_on(preference);
  const DeviceArray<int32_t> numbers(static_cast<size_t>(routing_numbers(shape)));
  route({.shape = shape,
         .scores = scores_on.get(),
         .n_scores = n_scores,
         .preference = preference.empty() ? nullptr : preference_on.get(),
         .gating = config.gating,
         .normalises = config.normalises,
         .scale = config.scale,
         .routing = routing_at(shape, numbers.get())},
        nullptr);
  std::vector<int32_t> all = numbers.read();
  const Routing at = routing_at(shape, all.data());
  const auto n_items = static_cast<size_t>(shape.most_items());
  const auto n_routes = static_cast<size_t>(shape.n_routes());
  return {.shape = shape,
          .shares = Floats(at.shares, at.shares + n_routes),
          .places = std::vector<int32_t>(at.places, at.places + n_routes),
          .experts = std::vector<int32_t>(at.experts, at.experts + n_items),
          .columns = std::vector<int32_t>(at.columns,
                                          at.columns + n_items * static_cast<size_t>(shape.width()))};
}

// Every route has a column of an item, and every column that somebody has a route.
void expect_grouped(const Routes& routes) {
  size_t n_columns = 0;
  for (const int32_t route : routes.columns) n_columns += route >= 0 ? 1 : 0;
  EXPECT_EQ(n_columns, routes.places.size());
  for (size_t route = 0; route < routes.places.size(); ++route) {
    const int32_t place = routes.places[route];
    ASSERT_TRUE(place >= 0 && place < static_cast<int32_t>(routes.columns.size()));
    EXPECT_EQ(routes.columns[static_cast<size_t>(place)], static_cast<int32_t>(route));
    if (!routes.shape.is_gathered()) {  // rows are where they are in all items
      EXPECT_EQ(place % routes.shape.width(), static_cast<int>(route) / routes.shape.n_used);
    }
  }
  for (int row = 0; row < routes.shape.n_rows; ++row) {
    std::set<int> experts;
    for (int i = 0; i < routes.shape.n_used; ++i) {
      experts.insert(routes.expert_of(row * routes.shape.n_used + i));
    }
    EXPECT_EQ(static_cast<int>(experts.size()), routes.shape.n_used);
    EXPECT_TRUE(*experts.begin() >= 0 && *experts.rbegin() < routes.shape.n_experts);
  }
  // Items that nobody has are behind the others, and no item is empty.
  bool is_over = false;
  for (size_t item = 0; item < routes.experts.size(); ++item) {
    bool has_route = false;
    for (int c = 0; c < routes.shape.width(); ++c) {
      has_route |=
          routes.columns[item * static_cast<size_t>(routes.shape.width()) + static_cast<size_t>(c)] >= 0;
    }
    is_over |= !has_route;
    EXPECT_EQ(is_over, routes.experts[item] < 0) << "item " << item;
  }
}

void check_routes(const ExpertsConfig& config, int n_rows, bool has_preference) {
  SCOPED_TRACE(std::to_string(config.n_used) + " of " + std::to_string(config.n_all) + ", " +
               std::to_string(n_rows) + " rows, gating " +
               std::to_string(static_cast<int>(config.gating)));
  std::mt19937 random(static_cast<unsigned>(config.n_all * 7 + n_rows));
  const int n_scores = config.n_all + 1;
  const Floats scores =
      random_floats(random, static_cast<size_t>(n_rows) * static_cast<size_t>(n_scores), 2.0f);
  const Floats preference =
      has_preference ? random_floats(random, static_cast<size_t>(config.n_all)) : Floats{};
  const Routes routes = run(scores, n_scores, n_rows, config, preference);
  expect_grouped(routes);
  std::vector<double> shares;
  for (int row = 0; row < n_rows; ++row) {
    const std::vector<double> values =
        expert_values(&scores[static_cast<size_t>(row) * static_cast<size_t>(n_scores)], config);
    std::vector<double> chosen_by = values;
    for (size_t i = 0; i < preference.size(); ++i) chosen_by[i] += preference[i];
    const std::vector<int> best = best_experts(chosen_by);
    std::vector<int> chosen;
    for (int i = 0; i < config.n_used; ++i) {
      chosen.push_back(routes.expert_of(row * config.n_used + i));
      // Another one may be as good.
      const double wanted = chosen_by[static_cast<size_t>(best[static_cast<size_t>(i)])];
      EXPECT_NEAR(chosen_by[static_cast<size_t>(chosen.back())], wanted, 1e-6 * (1 + std::abs(wanted)));
    }
    for (const double share : expert_shares(values, chosen, config)) shares.push_back(share);
  }
  expect_near(routes.shares, shares, 1e-5);
  for (const int row : {0, n_rows / 2, n_rows - 1}) {
    const Routes alone =
        run(rows_of(scores, {row}, static_cast<size_t>(n_scores)), n_scores, 1, config, preference);
    EXPECT_TRUE(
        same_bits(alone.shares, rows_of(routes.shares, {row}, static_cast<size_t>(config.n_used))));
  }
}

TEST_F(RoutingTest, ChoosesTheBest) {
  for (const auto [n_all, n_used] :
       {std::pair(1, 1), std::pair(4, 2), std::pair(8, 8), std::pair(32, 8), std::pair(60, 4),
        std::pair(128, 8), std::pair(129, 1), std::pair(160, 40), std::pair(1024, 64)}) {
    for (const ExpertGating gating :
         {ExpertGating::kSoftmax, ExpertGating::kSigmoid, ExpertGating::kSoftmaxOfChosen}) {
      for (const int n_rows : {1, 8, 16, 17, 64, 65, 200}) {
        ExpertsConfig config;
        config.n_all = n_all, config.n_used = n_used, config.gating = gating;
        config.normalises = n_rows % 2 == 0;
        config.scale = n_rows % 3 == 0 ? 1.0f : 2.5f;
        check_routes(config, n_rows, gating != ExpertGating::kSoftmaxOfChosen && n_rows % 5 != 0);
      }
    }
  }
}

// Equals, infinities and what is no number: every row still has that many experts, and of equals the
// first.
TEST_F(RoutingTest, OddScores) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  ExpertsConfig config;
  config.n_all = 40, config.n_used = 6;
  for (const ExpertGating gating :
       {ExpertGating::kSoftmax, ExpertGating::kSigmoid, ExpertGating::kSoftmaxOfChosen}) {
    config.gating = gating;
    for (const float odd : {kNaN, kInf, -kInf, 1.0f}) {
      for (const int n_rows : {1, 20, 100}) {
        Floats scores(static_cast<size_t>(n_rows) * 40, odd);
        for (size_t i = 40; i < scores.size(); i += 3) scores[i] = 0.5f;
        const Routes routes = run(scores, 40, n_rows, config, {});
        expect_grouped(routes);
        for (int i = 0; i < config.n_used; ++i) EXPECT_EQ(routes.expert_of(i), i);
      }
    }
  }
}

TEST_F(RoutingTest, Scores) {
  std::mt19937 random(3);
  for (const auto [n_in, n_experts] :
       {std::pair(64, 4), std::pair(1000, 8), std::pair(2048, 128), std::pair(2882, 33)}) {
    for (const bool has_shared : {false, true}) {
      const int64_t n_inputs = (n_in + 127) / 128 * 128;
      constexpr int kMost = 130;
      const Rows rows(kMost, n_in, random);
      const Floats router =
          random_floats(random, static_cast<size_t>(n_in) * static_cast<size_t>(n_experts));
      const Floats shared = random_floats(random, static_cast<size_t>(n_in));
      const Floats bias = random_floats(random, static_cast<size_t>(n_experts)), scale = {0.5f};
      const DeviceArray<float> router_on(router), shared_on(shared), bias_on(bias), scale_on(scale);
      for (const int n_rows : {1, 7, 64, 65, kMost}) {
        const Floats got = expect_row_invariant(n_rows, [&](const std::vector<int>& chosen) {
          const auto n_chosen = static_cast<int>(chosen.size());
          const DeviceArray<__half> x(rows.operand(chosen, n_inputs));
          ScoresWork work{
              .x = {.data = x.get(), .padded_rows = padded(n_chosen), .n_inputs = n_inputs},
              .router = {.weights = router_on.get(), .scale = scale_on.get(), .bias = bias_on.get()},
              .shared = {.weights = has_shared ? shared_on.get() : nullptr},
              .n_in = n_in,
              .n_experts = n_experts,
              .n_rows = n_chosen,
              .scores = nullptr};
          const DeviceArray<float> scores(chosen.size() * static_cast<size_t>(work.n_scores()));
          work.scores = scores.get();
          score_experts(work, nullptr);
          return scores.read();
        });
        std::vector<double> expected;
        for (int row = 0; row < n_rows; ++row) {
          const auto dot = [&](const float* weights) {
            double sum = 0;
            for (int k = 0; k < n_in; ++k) sum += double{weights[k]} * __half2float(rows.at(row, k));
            return sum;
          };
          for (int expert = 0; expert < n_experts; ++expert) {
            expected.push_back(
                0.5 * dot(&router[static_cast<size_t>(expert) * static_cast<size_t>(n_in)]) +
                bias[static_cast<size_t>(expert)]);
          }
          if (has_shared) expected.push_back(dot(shared.data()));
        }
        expect_near(got, expected, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace forerun::cuda
