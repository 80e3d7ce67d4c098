#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "model/cuda/best_logits.h"
#include "model/cuda/rows_fixtures.h"
#include "sampling/logits_fixtures.h"

namespace forerun::cuda {
namespace {

using test::Odd;
using test::odd_logits;

constexpr int kVocabularies[] = {1, 31, 128, 129, 512, 4096, 49152, 128256, 151937, 262144, 300001};
constexpr int kNumbers[] = {1, 2, 5, 64};  // of rows

std::vector<BestOfRow> best_of(const Floats& logits, int n_rows, int n_vocab) {
  const RowsShape shape{.n_rows = n_rows, .n = n_vocab};
  const DeviceArray<float> logits_on(logits);
  const DeviceArray<LogitSums> sums_on(static_cast<size_t>(n_rows) * units_of(n_vocab).n);
  const DeviceArray<BestOfRow> best_on(static_cast<size_t>(n_rows));
  sum_units(logits_on.get(), shape, sums_on.get(), nullptr);
  select_best(logits_on.get(), sums_on.get(), shape, best_on.get(), nullptr);
  return best_on.read();
}

void expect_best(const BestOfRow& got, std::span<const float> logits) {
  SelectionScratch scratch;
  std::vector<ScoredToken> expected;
  select_top(logits, kBestLogits, scratch, expected);
  ASSERT_EQ(got.n, static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(to_int(got.tokens[i].token), to_int(expected[i].token)) << "place " << i;
    ASSERT_EQ(std::signbit(got.tokens[i].logit), std::signbit(expected[i].logit)) << "place " << i;
    ASSERT_EQ(got.tokens[i].logit, expected[i].logit) << "place " << i;
  }
  if (expected.empty()) return;
  const SoftmaxSums sums = softmax_sums(logits);
  EXPECT_EQ(got.sums.max, sums.max);
  EXPECT_NEAR(got.sums.total, sums.total, 1e-5 * sums.total);
  EXPECT_NEAR(got.sums.entropy, sums.entropy, 1e-4);
}

// Of many rows some, the first and the last among them: the CPU takes long.
bool is_checked(int row, int n_rows) {
  return n_rows < 8 || row % 9 == 0 || row + 1 == n_rows;
}

using BestLogitsTest = RowsTest;

TEST_F(BestLogitsTest, AreThoseThatTheCpuSelects) {
  std::mt19937 random(1);
  for (const int n_vocab : kVocabularies) {
    for (const int n_rows : kNumbers) {
      Floats logits;
      for (int row = 0; row < n_rows; ++row) {
        const Floats one =
            odd_logits(random, static_cast<size_t>(n_vocab), static_cast<Odd>((row + n_rows) % 4));
        logits.insert(logits.end(), one.begin(), one.end());
      }
      const auto got = best_of(logits, n_rows, n_vocab);
      for (int row = 0; row < n_rows; ++row) {
        if (!is_checked(row, n_rows)) continue;
        const auto n = static_cast<size_t>(n_vocab);
        const auto of_row = std::span<const float>(logits).subspan(static_cast<size_t>(row) * n, n);
        ASSERT_NO_FATAL_FAILURE(expect_best(got[static_cast<size_t>(row)], of_row))
            << n_vocab << " tokens, row " << row << " of " << n_rows;
      }
    }
  }
}

// More reach the bound that units give than there is room for.
TEST_F(BestLogitsTest, WhereThousandsTieOrLieInOrder) {
  for (const int n_vocab : {49152, 128256, 262144}) {
    const auto n = static_cast<size_t>(n_vocab);
    Floats same(n, -3.5f), rising(n), falling(n), steps(n), excluded(n, -INFINITY);
    for (size_t i = 0; i < n; ++i) {
      rising[i] = static_cast<float>(i) * 1e-4f;
      falling[i] = -rising[i];
      steps[i] = static_cast<float>(i / 7000);
    }
    steps[11] = INFINITY;
    for (size_t i = 0; i < 50; ++i) excluded[i * 977] = 0.0f;
    const std::vector<Floats> rows{same, rising, falling, steps, excluded, Floats(n, NAN)};
    Floats logits;
    for (const Floats& row : rows) logits.insert(logits.end(), row.begin(), row.end());
    const auto got = best_of(logits, static_cast<int>(rows.size()), n_vocab);
    for (size_t row = 0; row < rows.size(); ++row) {
      ASSERT_NO_FATAL_FAILURE(expect_best(got[row], rows[row])) << n_vocab << ", row " << row;
    }
  }
}

TEST_F(BestLogitsTest, DoNotDependOnOtherRows) {
  std::mt19937 random(2);
  for (const int n_vocab : {1000, 128256}) {
    const auto n = static_cast<size_t>(n_vocab);
    constexpr int kAll = 70;
    Floats logits = random_floats(random, kAll * n, 3.0f);
    const auto together = best_of(logits, kAll, n_vocab);
    for (const int row : {0, 1, 33, 69}) {
      const BestOfRow alone = best_of(rows_of(logits, {row}, n), 1, n_vocab).front();
      const BestOfRow& among = together[static_cast<size_t>(row)];
      EXPECT_EQ(alone.sums.max, among.sums.max);
      EXPECT_EQ(alone.sums.total, among.sums.total);
      EXPECT_EQ(alone.sums.entropy, among.sums.entropy);
      ASSERT_EQ(alone.n, among.n);
      for (int64_t i = 0; i < alone.n; ++i) {
        EXPECT_EQ(to_int(alone.tokens[i].token), to_int(among.tokens[i].token));
        EXPECT_EQ(alone.tokens[i].logit, among.tokens[i].logit);
      }
    }
  }
}

}  // namespace
}  // namespace forerun::cuda
