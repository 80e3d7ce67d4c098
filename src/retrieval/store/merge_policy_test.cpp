#include "retrieval/store/merge_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace forerun {
namespace {

int64_t sum(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

// Adds segments of `unit` tokens one by one and merges; how many tokens were merged.
int64_t grow(std::vector<int64_t>& sizes, int64_t total, int64_t unit, int64_t max_size) {
  int64_t n_merged = 0;
  for (int64_t n = 0; n < total; n += unit) {
    sizes.push_back(unit);
    const size_t from = merge_from(sizes, max_size);
    if (from == sizes.size()) continue;
    const int64_t merged = sum(std::span(sizes).subspan(from));
    sizes.resize(from);
    sizes.push_back(merged);
    n_merged += merged;
  }
  return n_merged;
}

TEST(MergePolicy, AHundredMillionTokensAreFewSegments) {
  constexpr int64_t kTotal = 100'000'000;
  constexpr int64_t kUnit = 4096;
  std::vector<int64_t> sizes;
  size_t most = 0;
  int64_t n_merged = 0;
  for (int64_t n = 0; n < kTotal; n += 100 * kUnit) {
    n_merged += grow(sizes, 100 * kUnit, kUnit, kTotal);
    most = std::max(most, sizes.size());
  }
  EXPECT_LE(most, 9u);
  const double levels = std::log(double{kTotal} / kUnit) / std::log(kRatio + 1);
  EXPECT_LE(static_cast<double>(n_merged), (kRatio + 1) * (levels + 1) * kTotal);
}

TEST(MergePolicy, SizesFallGeometrically) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> sizes;
    for (int i = 0; i < 60; ++i) {
      sizes.push_back(std::uniform_int_distribution<int64_t>(1, 500)(random));
      const size_t from = merge_from(sizes, int64_t{1} << 40);
      const int64_t merged = sum(std::span(sizes).subspan(from));
      if (from < sizes.size()) {
        sizes.resize(from);
        sizes.push_back(merged);
      }
      for (size_t k = 0; k + 1 < sizes.size(); ++k) {
        ASSERT_GE(sizes[k], kRatio * sum(std::span(sizes).subspan(k + 1)));
      }
    }
  }
}

TEST(MergePolicy, NothingGrowsBeyondTheMaximumAndNothingIsMergedForEver) {
  std::vector<int64_t> sizes;
  grow(sizes, 100'000, 10, 3'000);
  for (const int64_t size : sizes) EXPECT_LE(size, 3'000);
  EXPECT_EQ(merge_from(sizes, 3'000), sizes.size());
  // Those that are full are at least three quarters of it.
  EXPECT_LE(sizes.size(), 100'000u / 2'250 + 6);
}

TEST(MergePolicy, DropsTheOldestUntilTheRestFits) {
  const std::vector<int64_t> sizes = {50, 30, 20, 10};
  EXPECT_EQ(count_to_drop(sizes, 0), 0u);
  EXPECT_EQ(count_to_drop(sizes, 110), 0u);
  EXPECT_EQ(count_to_drop(sizes, 109), 1u);
  EXPECT_EQ(count_to_drop(sizes, 60), 1u);
  EXPECT_EQ(count_to_drop(sizes, 59), 2u);
  EXPECT_EQ(count_to_drop(sizes, 1), 3u) << "the youngest stays";
  EXPECT_EQ(count_to_drop({}, 1), 0u);
}

TEST(MergePolicy, RunsAreAsLongAsTheLimitAllows) {
  using Ends = std::vector<size_t>;
  EXPECT_EQ(runs_up_to({}, 10), Ends{});
  EXPECT_EQ(runs_up_to(std::vector<int64_t>{4, 4, 4, 1}, 8), (Ends{2, 4}));
  EXPECT_EQ(runs_up_to(std::vector<int64_t>{99, 1, 99}, 8), (Ends{1, 2, 3}));
  EXPECT_EQ(runs_up_to(std::vector<int64_t>{1, 2, 3}, 100), (Ends{3}));
}

}  // namespace
}  // namespace forerun
