#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "model/cuda/device_array.h"
#include "model/cuda/rows.h"

namespace forerun::cuda {
namespace {

class RowsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};

using Floats = std::vector<float>;

Floats random_floats(std::mt19937& random, size_t n, float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  Floats to(n);
  for (float& f : to) f = normal(random);
  return to;
}

Floats rows_of(const Floats& all, const std::vector<int>& rows, size_t n) {
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
  Floats data;  // [part][row][output]

  TestParts(std::mt19937& random, int n_rows, int n_outputs, int n_blocks)
      : cut{.tile_rows = 16, .n_tiles = (n_outputs + 15) / 16, .n_stages = 7, .n_blocks = n_blocks},
        n_rows(n_rows),
        most_parts(0) {
    for (int i = 0; i < cut.n_outputs(); ++i) most_parts = std::max(most_parts, cut.n_parts(i));
    data = random_floats(random, static_cast<size_t>(most_parts) * n_rows * cut.n_outputs());
  }
  double sum(int row, int output) const {
    double sum = 0;
    for (int p = 0; p < cut.n_parts(output); ++p) {
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
            .cut = cut};
  }
};

std::vector<int> all_rows(int n) {
  std::vector<int> rows;
  for (int i = 0; i < n; ++i) rows.push_back(i);
  return rows;
}

// [row][n_inputs]
Floats unpacked(const std::vector<__half>& operand, size_t n_rows, int64_t n_inputs, int padded_rows) {
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

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
void expect_near(const Floats& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(norm));
}
// run(rows) of all rows equals that of each alone, [row][n].
template <typename Run>
Floats expect_row_invariant(int n_rows, Run run) {
  const Floats together = run(all_rows(n_rows));
  const size_t n = together.size() / static_cast<size_t>(n_rows);
  for (int r = 0; r < n_rows; ++r)
    EXPECT_TRUE(same_bits(rows_of(together, {r}, n), run({r}))) << "row " << r;
  return together;
}

constexpr int kSizes[] = {1, 30, 33, 64, 576, 1000, 1536, 2049, 4096, 14336, 16384};
constexpr int kRows = 11;
constexpr float kEps = 1e-5f;

double rms_factor(const std::vector<double>& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
}

TEST_F(RowsTest, AddNorm) {
  std::mt19937 random(1);
  for (const int n : kSizes) {
    for (const bool adds : {true, false}) {
      const int first = n % 2 == 0 ? 32 : 3;
      const TestParts parts(random, kRows, first + n, 50);
      const Floats states = random_floats(random, static_cast<size_t>(kRows) * n);
      const Floats weight = random_floats(random, static_cast<size_t>(n));
      const Floats bias = random_floats(random, static_cast<size_t>(n));
      const Floats scale = {0.75f};
      const int64_t n_inputs = (n + 63) / 64 * 64 + 64;
      const auto run = [&](const std::vector<int>& rows) {
        const int padded_rows = padded(static_cast<int>(rows.size()));
        const DeviceArray<float> parts_on(parts.of(rows)), weight_on(weight), bias_on(bias),
            scale_on(scale);
        const DeviceArray<float> states_on(rows_of(states, rows, static_cast<size_t>(n)));
        const DeviceArray<__half> x_on(static_cast<size_t>(operand_halves(static_cast<int>(rows.size()), n_inputs)));
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
      const Floats got = expect_row_invariant(kRows, run);
      std::vector<double> expected;
      for (int r = 0; r < kRows; ++r) {
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
  for (const int n : kSizes) {
    const TestParts parts(random, kRows, n, 20);
    const Floats states = random_floats(random, static_cast<size_t>(kRows) * n);
    const Floats weight = random_floats(random, static_cast<size_t>(n));
    const Floats got = expect_row_invariant(kRows, [&](const std::vector<int>& rows) {
      const DeviceArray<float> parts_on(parts.of(rows)), weight_on(weight);
      const DeviceArray<float> states_on(rows_of(states, rows, static_cast<size_t>(n)));
      const DeviceArray<float> sum_on(rows.size() * static_cast<size_t>(n));
      norm_add(states_on.get(), {.parts = parts.on(parts_on, rows.size()), .first = 0, .n = n},
               weight_on.get(), kEps, {.n_rows = static_cast<int>(rows.size()), .n = n}, sum_on.get(),
               nullptr);
      return sum_on.read();
    });
    std::vector<double> expected;
    for (int r = 0; r < kRows; ++r) {
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
  for (const int n : kSizes) {
    const TestParts parts(random, kRows, n, 20);
    const Floats states = random_floats(random, static_cast<size_t>(kRows) * n);
    const std::vector<int32_t> chosen = {3, 0, 10, 3};
    const DeviceArray<float> parts_on(parts.of(all_rows(kRows))), states_on(states);
    const DeviceArray<int32_t> chosen_on(chosen);
    const DeviceArray<float> to(chosen.size() * static_cast<size_t>(n));
    copy_rows(states_on.get(), {.parts = parts.on(parts_on, kRows), .first = 0, .n = n}, chosen_on.get(),
              {.n_rows = static_cast<int>(chosen.size()), .n = n}, to.get(), nullptr);
    std::vector<double> expected;
    for (const int r : chosen) {
      for (int i = 0; i < n; ++i)
        expected.push_back(states[static_cast<size_t>(r) * n + i] + parts.sum(r, i));
    }
    expect_near(to.read(), expected, 1e-6);
    copy_rows(states_on.get(), {}, chosen_on.get(), {.n_rows = static_cast<int>(chosen.size()), .n = n},
              to.get(), nullptr);
    EXPECT_TRUE(same_bits(to.read(), rows_of(states, chosen, static_cast<size_t>(n))));
    copy_rows(states_on.get(), {}, nullptr, {.n_rows = 2, .n = n}, to.get(), nullptr);
    Floats first_two = to.read();
    first_two.resize(2 * static_cast<size_t>(n));
    EXPECT_TRUE(same_bits(first_two, rows_of(states, {0, 1}, static_cast<size_t>(n))));
  }
}

TEST_F(RowsTest, Gated) {
  std::mt19937 random(4);
  for (const int n : kSizes) {
    for (const Gate gate : {Gate::kSilu, Gate::kGelu}) {
      const TestParts parts(random, kRows, 2 * n, 60);
      const int64_t n_inputs = (n + 63) / 64 * 64 + 64;
      const Floats got = expect_row_invariant(kRows, [&](const std::vector<int>& rows) {
        const int padded_rows = padded(static_cast<int>(rows.size()));
        const DeviceArray<float> parts_on(parts.of(rows));
        const DeviceArray<__half> x_on(static_cast<size_t>(operand_halves(static_cast<int>(rows.size()), n_inputs)));
        const Parts on = parts.on(parts_on, rows.size());
        gated(gate, {.parts = on, .first = 0, .n = n}, {.parts = on, .first = n, .n = n},
              {.n_rows = static_cast<int>(rows.size()), .n = n},
              {.data = x_on.get(), .padded_rows = padded_rows, .n_inputs = n_inputs}, nullptr);
        return unpacked(x_on.read(), rows.size(), n_inputs, padded_rows);
      });
      std::vector<double> expected;
      for (int r = 0; r < kRows; ++r) {
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
  for (const int n : {5, 1000, 151936}) {
    for (const float cap : {0.0f, 3.0f}) {
      const TestParts parts(random, 3, n, 264);
      const Floats got = expect_row_invariant(3, [&](const std::vector<int>& rows) {
        const DeviceArray<float> parts_on(parts.of(rows));
        const DeviceArray<float> y(rows.size() * static_cast<size_t>(n));
        finish({.parts = parts.on(parts_on, rows.size()), .first = 0, .n = n},
               static_cast<int>(rows.size()), cap, y.get(), nullptr);
        return y.read();
      });
      std::vector<double> expected;
      for (int r = 0; r < 3; ++r) {
        for (int i = 0; i < n; ++i) {
          const double y = parts.sum(r, i);
          expected.push_back(cap > 0 ? cap * std::tanh(y / cap) : y);
        }
      }
      expect_near(got, expected, 1e-5);
    }
  }
}

struct HeadsCase {
  int n_heads, n_kv_heads, head_dim, n_rope_dims;
  bool rotates_pairs, normalizes;
};

TEST_F(RowsTest, Heads) {
  std::mt19937 random(6);
  for (const HeadsCase& c :
       {HeadsCase{4, 2, 128, 128, false, true}, HeadsCase{6, 2, 64, 64, true, false},
        HeadsCase{3, 1, 80, 32, false, false}, HeadsCase{2, 2, 256, 256, false, true}}) {
    const int q_size = c.n_heads * c.head_dim, kv_size = c.n_kv_heads * c.head_dim,
              half = c.n_rope_dims / 2;
    const TestParts parts(random, kRows, q_size + 2 * kv_size, 40);
    const Floats q_norm = random_floats(random, static_cast<size_t>(c.head_dim));
    const Floats k_norm = random_floats(random, static_cast<size_t>(c.head_dim));
    const Floats bias = random_floats(random, static_cast<size_t>(kv_size));
    std::vector<float2> rope(static_cast<size_t>(kRows * half));
    for (float2& turn : rope) {
      const double angle = static_cast<double>(random() % 1000);
      turn = make_float2(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
    }
    const int64_t cache_row = kv_size + 8;
    // [row][q, k, v]
    const Floats got = expect_row_invariant(kRows, [&](const std::vector<int>& rows) {
      std::vector<int64_t> cells;
      std::vector<float2> turns;
      for (const int r : rows) {
        cells.push_back((r * 5 + 2) % 13);
        turns.insert(turns.end(), rope.begin() + r * half, rope.begin() + (r + 1) * half);
      }
      const DeviceArray<float> parts_on(parts.of(rows)), q_norm_on(q_norm), k_norm_on(k_norm),
          bias_on(bias);
      const DeviceArray<float2> rope_on(turns);
      const DeviceArray<int64_t> cells_on(cells);
      const DeviceArray<__half> keys(static_cast<size_t>(13 * cache_row)),
          values(static_cast<size_t>(13 * cache_row));
      const DeviceArray<__half> q(rows.size() * static_cast<size_t>(q_size));
      const Parts on = parts.on(parts_on, rows.size());
      heads({.q = {.parts = on, .first = 0, .n = q_size},
             .k = {.parts = on, .first = q_size, .n = kv_size, .bias = bias_on.get()},
             .v = {.parts = on, .first = q_size + kv_size, .n = kv_size},
             .n_rows = static_cast<int>(rows.size()),
             .n_heads = c.n_heads,
             .n_kv_heads = c.n_kv_heads,
             .head_dim = c.head_dim,
             .q_norm = c.normalizes ? q_norm_on.get() : nullptr,
             .k_norm = c.normalizes ? k_norm_on.get() : nullptr,
             .eps = kEps,
             .rotates_pairs = c.rotates_pairs,
             .n_rope_dims = c.n_rope_dims,
             .rope = rope_on.get(),
             .cells = cells_on.get(),
             .keys = keys.get(),
             .values = values.get(),
             .cache_row = cache_row,
             .q_out = q.get()},
            nullptr);
      const auto q_back = q.read(), k_back = keys.read(), v_back = values.read();
      Floats to;
      for (size_t r = 0; r < rows.size(); ++r) {
        for (int i = 0; i < q_size; ++i) to.push_back(__half2float(q_back[r * q_size + i]));
        for (int i = 0; i < kv_size; ++i)
          to.push_back(__half2float(k_back[static_cast<size_t>(cells[r] * cache_row + i)]));
        for (int i = 0; i < kv_size; ++i)
          to.push_back(__half2float(v_back[static_cast<size_t>(cells[r] * cache_row + i)]));
      }
      return to;
    });
    std::vector<double> expected;
    for (int r = 0; r < kRows; ++r) {
      for (int head = 0; head < c.n_heads + 2 * c.n_kv_heads; ++head) {
        const bool is_query = head < c.n_heads, is_value = head >= c.n_heads + c.n_kv_heads;
        std::vector<double> x;
        for (int i = 0; i < c.head_dim; ++i) {
          x.push_back(parts.sum(r, head * c.head_dim + i));
          if (!is_query && !is_value)
            x.back() += bias[static_cast<size_t>((head - c.n_heads) * c.head_dim + i)];
        }
        if (c.normalizes && !is_value) {
          const double factor = rms_factor(x);
          for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * (is_query ? q_norm : k_norm)[i];
        }
        for (int i = 0; i < half && !is_value; ++i) {
          const float2 turn = rope[static_cast<size_t>(r * half + i)];
          double& a = x[static_cast<size_t>(c.rotates_pairs ? 2 * i : i)];
          double& b = x[static_cast<size_t>(c.rotates_pairs ? 2 * i + 1 : i + half)];
          const double turned = a * turn.x - b * turn.y;
          b = a * turn.y + b * turn.x;
          a = turned;
        }
        expected.insert(expected.end(), x.begin(), x.end());
      }
    }
    expect_near(got, expected, 1e-3);
  }
}

TEST_F(RowsTest, RopeTable) {
  const Floats factors = {1.0f, 1.5f, 2.0f, 4.0f, 1.0f, 1.0f, 8.0f, 32.0f};
  const DeviceArray<float> factors_on(factors);
  const std::vector<int32_t> positions = {0, 1, 77, 4095, 131071};
  const DeviceArray<int32_t> positions_on(positions);
  for (const bool yarn : {false, true}) {
    const RopeTable table{.n_dims = 16,
                          .freq_base = 10000.0f,
                          .freq_scale = 0.25f,
                          .ext_factor = yarn ? 1.0f : 0.0f,
                          .magnitude = 1.25f,
                          .yarn_low = 2.0f,
                          .yarn_high = 6.0f,
                          .factors = yarn ? nullptr : factors_on.get()};
    const DeviceArray<float2> to(positions.size() * 8);
    rope_table(table, positions_on.get(), static_cast<int>(positions.size()), to.get(), nullptr);
    const std::vector<float2> got = to.read();
    const float step = std::pow(table.freq_base, -2.0f / 16);
    for (size_t r = 0; r < positions.size(); ++r) {
      auto theta = static_cast<float>(positions[r]);
      for (size_t i = 0; i < 8; ++i, theta *= step) {
        const float own = yarn ? theta : theta / factors[i];
        float angle = table.freq_scale * own;
        if (yarn) {
          const float kept =
              1.0f - std::min(std::max((static_cast<float>(i) - 2.0f) / 4.0f, 0.0f), 1.0f);
          angle = angle * (1.0f - kept) + own * kept;
        }
        // One rounding of the angle may differ.
        const double tolerance = 1e-6 + 2e-7 * std::abs(angle);
        EXPECT_NEAR(got[r * 8 + i].x, 1.25 * std::cos(static_cast<double>(angle)), tolerance);
        EXPECT_NEAR(got[r * 8 + i].y, 1.25 * std::sin(static_cast<double>(angle)), tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace forerun::cuda
