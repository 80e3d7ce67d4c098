#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "model/cuda/rows_fixtures.h"

namespace forerun::cuda {
namespace {

TEST_F(RowsTest, AddNorm) {
  std::mt19937 random(1);
  for (const auto [n, n_rows, of_groups] : kRowsCases) {
    for (const bool adds : {true, false}) {
      const int first = n % 2 == 0 ? 32 : 3;
      const TestParts parts(random, n_rows, first + n, 50, of_groups);
      const Floats states = random_floats(random, static_cast<size_t>(n_rows) * n);
      const Floats weight = random_floats(random, static_cast<size_t>(n));
      const Floats bias = random_floats(random, static_cast<size_t>(n));
      const Floats scale = {0.75f};
      const int64_t n_inputs = (n + 63) / 64 * 64 + 64;
      const auto run = [&](const std::vector<int>& rows) {
        const int padded_rows = padded(static_cast<int>(rows.size()));
        const DeviceArray<float> parts_on(parts.of(rows)), weight_on(weight), bias_on(bias),
            scale_on(scale);
        const DeviceArray<float> states_on(rows_of(states, rows, static_cast<size_t>(n)));
        const DeviceArray<__half> x_on(
            static_cast<size_t>(operand_halves(static_cast<int>(rows.size()), n_inputs)));
        Segment added;
        if (adds) {
          added = {.parts = parts.on(parts_on, rows.size()),
                   .first = first,
                   .n = n,
                   .scale = scale_on.get(),
                   .bias = bias_on.get()};
        }
        add_norm(states_on.get(), added, weight_on.get(), kEps,
                 {.n_rows = static_cast<int>(rows.size()), .n = n}, states_on.get(),
                 {.data = x_on.get(), .padded_rows = padded_rows, .n_inputs = n_inputs}, nullptr);
        const Floats sums = states_on.read();
        const Floats x = unpacked(x_on.read(), rows.size(), n_inputs, padded_rows);
        Floats both;
        for (size_t r = 0; r < rows.size(); ++r) {
          const Floats a = rows_of(x, {static_cast<int>(r)}, static_cast<size_t>(n_inputs));
          const Floats b = rows_of(sums, {static_cast<int>(r)}, static_cast<size_t>(n));
          both.insert(both.end(), a.begin(), a.end());
          both.insert(both.end(), b.begin(), b.end());
        }
        return both;
      };
      const Floats got = expect_row_invariant(n_rows, run);
      std::vector<double> expected;
      for (int r = 0; r < n_rows; ++r) {
        std::vector<double> sum;
        for (int i = 0; i < n; ++i) {
          sum.push_back(
              states[static_cast<size_t>(r) * n + i] +
              (adds ? parts.sum(r, first + i) * scale[0] + bias[static_cast<size_t>(i)] : 0.0));
        }
        const double factor = rms_factor(sum);
        for (int64_t i = 0; i < n_inputs; ++i) {
          expected.push_back(
              i < n ? sum[static_cast<size_t>(i)] * factor * weight[static_cast<size_t>(i)] : 0.0);
        }
        expected.insert(expected.end(), sum.begin(), sum.end());
      }
      expect_near(got, expected, 1e-3);
    }
  }
}

TEST_F(RowsTest, NormAdd) {
  std::mt19937 random(2);
  for (const auto [n, n_rows, of_groups] : kRowsCases) {
    const TestParts parts(random, n_rows, n, 20, of_groups);
    const Floats states = random_floats(random, static_cast<size_t>(n_rows) * n);
    const Floats weight = random_floats(random, static_cast<size_t>(n));
    const Floats got = expect_row_invariant(n_rows, [&](const std::vector<int>& rows) {
      const DeviceArray<float> parts_on(parts.of(rows)), weight_on(weight);
      const DeviceArray<float> states_on(rows_of(states, rows, static_cast<size_t>(n)));
      const DeviceArray<float> sum_on(rows.size() * static_cast<size_t>(n));
      norm_add(states_on.get(), {.parts = parts.on(parts_on, rows.size()), .first = 0, .n = n},
               weight_on.get(), kEps, {.n_rows = static_cast<int>(rows.size()), .n = n}, sum_on.get(),
               nullptr);
      return sum_on.read();
    });
    std::vector<double> expected;
    for (int r = 0; r < n_rows; ++r) {
      std::vector<double> sum;
      for (int i = 0; i < n; ++i) sum.push_back(parts.sum(r, i));
      const double factor = rms_factor(sum);
      for (int i = 0; i < n; ++i) {
        expected.push_back(states[static_cast<size_t>(r) * n + i] +
                           sum[static_cast<size_t>(i)] * factor * weight[static_cast<size_t>(i)]);
      }
    }
    expect_near(got, expected, 1e-5);
  }
}

TEST_F(RowsTest, CopyRows) {
  std::mt19937 random(3);
  for (const auto [n, n_rows, of_groups] : kRowsCases) {
    const TestParts parts(random, n_rows, n, 20, of_groups);
    const Floats states = random_floats(random, static_cast<size_t>(n_rows) * n);
    const DeviceArray<float> parts_on(parts.of(all_rows(n_rows))), states_on(states);
    const Segment added{.parts = parts.on(parts_on, static_cast<size_t>(n_rows)), .first = 0, .n = n};
    const auto chosen_of = [&](const std::vector<int>& rows) {  // in no order, some twice
      std::vector<int32_t> chosen;
      for (const int r : rows) chosen.push_back((r * r + 3) % n_rows);
      return chosen;
    };
    const auto copy = [&](const Segment& segment, const std::vector<int>& rows, bool chooses) {
      const DeviceArray<int32_t> chosen_on(chosen_of(rows));
      const DeviceArray<float> to(rows.size() * static_cast<size_t>(n));
      copy_rows(states_on.get(), segment, chooses ? chosen_on.get() : nullptr,
                {.n_rows = static_cast<int>(rows.size()), .n = n}, to.get(), nullptr);
      return to.read();
    };
    const Floats got = expect_row_invariant(
        n_rows, [&](const std::vector<int>& rows) { return copy(added, rows, true); });
    const std::vector<int32_t> chosen = chosen_of(all_rows(n_rows));
    std::vector<double> expected;
    for (const int r : chosen) {
      for (int i = 0; i < n; ++i)
        expected.push_back(states[static_cast<size_t>(r) * n + i] + parts.sum(r, i));
    }
    expect_near(got, expected, 1e-6);
    EXPECT_TRUE(
        same_bits(copy({}, all_rows(n_rows), true), rows_of(states, chosen, static_cast<size_t>(n))));
    EXPECT_TRUE(same_bits(copy({}, all_rows(n_rows), false), states));
    EXPECT_TRUE(same_bits(copy({}, {0, 1}, false), rows_of(states, {0, 1}, static_cast<size_t>(n))));
  }
}

TEST_F(RowsTest, Gated) {
  std::mt19937 random(4);
  for (const auto [n, n_rows, of_groups] : kRowsCases) {
    for (const Gate gate : {Gate::kSilu, Gate::kGelu}) {
      const TestParts parts(random, n_rows, 2 * n, 60, of_groups);
      const int64_t n_inputs = (n + 63) / 64 * 64 + 64;
      const Floats got = expect_row_invariant(n_rows, [&](const std::vector<int>& rows) {
        const int padded_rows = padded(static_cast<int>(rows.size()));
        const DeviceArray<float> parts_on(parts.of(rows));
        const DeviceArray<__half> x_on(
            static_cast<size_t>(operand_halves(static_cast<int>(rows.size()), n_inputs)));
        const Parts on = parts.on(parts_on, rows.size());
        gated(gate, {.parts = on, .first = 0, .n = n}, {.parts = on, .first = n, .n = n},
              {.n_rows = static_cast<int>(rows.size()), .n = n}, nullptr,
              {.data = x_on.get(), .padded_rows = padded_rows, .n_inputs = n_inputs}, nullptr);
        return unpacked(x_on.read(), rows.size(), n_inputs, padded_rows);
      });
      std::vector<double> expected;
      for (int r = 0; r < n_rows; ++r) {
        for (int i = 0; i < n_inputs; ++i) {
          if (i >= n) {
            expected.push_back(0.0);
            continue;
          }
          const double a = parts.sum(r, i), b = parts.sum(r, n + i);
          const double y = std::sqrt(2.0 / M_PI) * (a + 0.044715 * a * a * a);
          expected.push_back(
              b * (gate == Gate::kSilu ? a / (1 + std::exp(-a)) : a / 2 * (1 + std::tanh(y))));
        }
      }
      expect_near(got, expected, 1e-3);
    }
  }
}

TEST_F(RowsTest, Finish) {
  std::mt19937 random(5);
  for (const auto [n, n_rows, of_groups] :
       {RowsCase{5, 3}, RowsCase{1000, 3}, RowsCase{151936, 3}, RowsCase{1000, 131},
        RowsCase{1002, 130, true}, RowsCase{4000, 150, true}, RowsCase{256, 512, true}}) {
    for (const float cap : {0.0f, 3.0f}) {
      const TestParts parts(random, n_rows, n, 264, of_groups);
      const Floats got = expect_row_invariant(n_rows, [&](const std::vector<int>& rows) {
        const DeviceArray<float> parts_on(parts.of(rows));
        const DeviceArray<float> y(rows.size() * static_cast<size_t>(n));
        finish({.parts = parts.on(parts_on, rows.size()), .first = 0, .n = n},
               static_cast<int>(rows.size()), cap, y.get(), nullptr);
        return y.read();
      });
      std::vector<double> expected;
      for (int r = 0; r < n_rows; ++r) {
        for (int i = 0; i < n; ++i) {
          const double y = parts.sum(r, i);
          expected.push_back(cap > 0 ? cap * std::tanh(y / cap) : y);
        }
      }
      expect_near(got, expected, 1e-5);
    }
  }
}

// Weights and products of gates beyond what halves can be.
TEST_F(RowsTest, OperandsSaturate) {
  std::mt19937 random(7);
  constexpr int kN = 1000;
  constexpr int64_t kInputs = 1024;
  const Operand x{.data = nullptr, .padded_rows = padded(kRows), .n_inputs = kInputs};
  const DeviceArray<__half> x_on(static_cast<size_t>(operand_halves(kRows, kInputs)));
  Operand to = x;
  to.data = x_on.get();
  const auto got = [&] { return unpacked(x_on.read(), kRows, kInputs, x.padded_rows); };

  const DeviceArray<float> states(random_floats(random, size_t{kRows} * kN));
  const DeviceArray<float> weight(random_floats(random, kN, 1e6f));
  add_norm(states.get(), {}, weight.get(), kEps, {.n_rows = kRows, .n = kN}, states.get(), to, nullptr);
  EXPECT_GT(expect_saturated(got()), kRows * kN / 2);

  TestParts parts(random, kRows, 2 * kN, 60);
  for (float& part : parts.data) part *= 1e4f;
  const DeviceArray<float> parts_on(parts.data);
  const Parts on = parts.on(parts_on, kRows);
  gated(Gate::kSilu, {.parts = on, .first = 0, .n = kN}, {.parts = on, .first = kN, .n = kN},
        {.n_rows = kRows, .n = kN}, nullptr, to, nullptr);
  EXPECT_GT(expect_saturated(got()), kRows * kN / 3);
}

}  // namespace
}  // namespace forerun::cuda
