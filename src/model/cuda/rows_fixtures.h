// Rows, and what products leave of them, for tests of what is done to rows on the GPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "model/cuda/device_array.h"
#include "model/cuda/rows.h"

namespace forerun::cuda {

class RowsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};

using Floats = std::vector<float>;

inline Floats random_floats(std::mt19937& random, size_t n, float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  Floats to(n);
  for (float& f : to) f = normal(random);
  return to;
}

inline Floats rows_of(const Floats& all, const std::vector<int>& rows, size_t n) {
  Floats to;
  for (const int r : rows) {
    to.insert(to.end(), all.begin() + static_cast<std::ptrdiff_t>(r * n),
              all.begin() + static_cast<std::ptrdiff_t>((r + 1) * n));
  }
  return to;
}

// What a product with `n_products` matrices left, for some of its rows.
struct TestParts {
  Cut cut;
  int n_rows, most_parts;
  bool of_groups;
  Floats data;  // [part][row][output]

  TestParts(std::mt19937& random, int n_rows, int n_outputs, int n_runs, bool of_groups = false)
      : cut{.tile_rows = 16, .n_tiles = (n_outputs + 15) / 16, .n_stages = 7, .n_runs = n_runs},
        n_rows(n_rows),
        most_parts(0),
        of_groups(of_groups) {
    for (int i = 0; i < cut.n_outputs(); ++i) most_parts = std::max(most_parts, n_parts(i));
    data = random_floats(random, static_cast<size_t>(most_parts) * n_rows * cut.n_outputs());
  }
  int n_parts(int output) const {
    return of_groups ? cut.runs(output).n_groups() : cut.runs(output).n();
  }
  double sum(int row, int output) const {
    double sum = 0;
    for (int p = 0; p < n_parts(output); ++p) {
      sum += data[(static_cast<size_t>(p) * n_rows + row) * cut.n_outputs() + output];
    }
    return sum;
  }
  Floats of(const std::vector<int>& rows) const {
    Floats to;
    const size_t size = static_cast<size_t>(n_rows) * cut.n_outputs();
    for (int p = 0; p < most_parts; ++p) {
      const Floats part(data.begin() + static_cast<std::ptrdiff_t>(p * size),
                        data.begin() + static_cast<std::ptrdiff_t>((p + 1) * size));
      const Floats chosen = rows_of(part, rows, static_cast<size_t>(cut.n_outputs()));
      to.insert(to.end(), chosen.begin(), chosen.end());
    }
    return to;
  }
  Parts on(const DeviceArray<float>& device, size_t n_chosen) const {
    return {.data = device.get(),
            .stride = static_cast<int64_t>(n_chosen) * cut.n_outputs(),
            .n_outputs = cut.n_outputs(),
            .cut = cut,
            .of_groups = of_groups};
  }
};

inline std::vector<int> all_rows(int n) {
  std::vector<int> rows;
  for (int i = 0; i < n; ++i) rows.push_back(i);
  return rows;
}

// [row][n_inputs]
inline Floats unpacked(const std::vector<__half>& operand, size_t n_rows, int64_t n_inputs,
                       int padded_rows) {
  Floats to;
  for (size_t r = 0; r < n_rows; ++r) {
    for (int64_t k = 0; k < n_inputs; ++k) {
      const Operand place{.data = nullptr, .padded_rows = padded_rows, .n_inputs = n_inputs};
      const int64_t at = place.index(k, static_cast<int>(r));
      to.push_back(__half2float(operand[static_cast<size_t>(at)]));
    }
  }
  return to;
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
inline void expect_near(const Floats& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm));
}
// run(rows) of all rows equals that of each alone, [row][n]. Of many rows some are run alone, the last
// ones among them.
template <typename Run>
Floats expect_row_invariant(int n_rows, Run run) {
  const Floats together = run(all_rows(n_rows));
  const size_t n = together.size() / static_cast<size_t>(n_rows);
  for (int r = 0; r < n_rows; ++r) {
    if (n_rows > 64 && r % 19 != 0 && r + 5 < n_rows) continue;
    EXPECT_TRUE(same_bits(rows_of(together, {r}, n), run({r}))) << "row " << r << " of " << n_rows;
  }
  return together;
}

constexpr int kRows = 11;
struct RowsCase {
  int n;
  int n_rows = kRows;
  bool of_groups = false;  // parts
};
constexpr RowsCase kRowsCases[] = {
    {1},
    {30},
    {33},
    {64},
    {576},
    {1000},
    {1536},
    {2049},
    {4096},
    {14336},
    {16384},
    // More rows than one operand holds, and so many that kernels have several at once.
    {64, 65},
    {2304, 128},
    {64, 129},
    {64, 130, true},
    {33, 131, true},
    {1000, 132},
    {1536, 150, true},
    {2048, 131},
    {2049, 129, true},
    {2304, 512, true},
    {4416, 150, true},
    {8192, 133},
    {8196, 130, true},
};
constexpr float kEps = 1e-5f;

inline double rms_factor(const std::vector<double>& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
}

// How many numbers are larger than halves can be; all must be saturated, none NaN.
inline int expect_saturated(const Floats& got) {
  int n = 0;
  for (const float x : got) {
    EXPECT_LE(std::abs(x), 65504.0f);  // not if it is NaN
    n += std::abs(x) == 65504.0f ? 1 : 0;
  }
  return n;
}

}  // namespace forerun::cuda
