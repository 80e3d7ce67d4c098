#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "model/cuda/rows_fixtures.h"

namespace forerun::cuda {
namespace {

struct HeadsCase {
  int n_heads, n_kv_heads, head_dim, n_rope_dims;
  bool rotates_pairs, normalizes;
  ggml_type cache_type = GGML_TYPE_F16;
  int n_rows = kRows;
  bool of_groups = false;  // parts
};

// Numbers of a cell.
Floats cell_numbers(const std::vector<std::byte>& cache, int64_t cell, int64_t row_bytes, ggml_type type,
                    int n) {
  Floats numbers(static_cast<size_t>(n));
  ggml_get_type_traits(type)->to_float(cache.data() + cell * row_bytes, numbers.data(), n);
  return numbers;
}

TEST_F(RowsTest, Heads) {
  std::mt19937 random(6);
  for (const HeadsCase& c :
       {HeadsCase{4, 2, 128, 128, false, true}, HeadsCase{6, 2, 64, 64, true, false},
        HeadsCase{3, 1, 80, 32, false, false}, HeadsCase{2, 2, 256, 256, false, true},
        HeadsCase{4, 2, 128, 128, false, true, GGML_TYPE_Q8_0},
        HeadsCase{6, 3, 96, 96, true, false, GGML_TYPE_Q8_0},
        HeadsCase{2, 2, 256, 256, false, true, GGML_TYPE_Q8_0},
        // So many rows that a warp has several.
        HeadsCase{6, 2, 64, 64, false, false, GGML_TYPE_F16, 65},
        HeadsCase{6, 2, 64, 64, false, true, GGML_TYPE_F16, 129},
        HeadsCase{6, 2, 64, 64, true, false, GGML_TYPE_F16, 512, true},
        HeadsCase{5, 1, 48, 32, false, true, GGML_TYPE_F16, 130, true},
        HeadsCase{6, 3, 64, 64, false, true, GGML_TYPE_Q8_0, 133, true},
        HeadsCase{3, 1, 32, 32, true, false, GGML_TYPE_Q8_0, 150},
        HeadsCase{3, 1, 80, 32, false, true, GGML_TYPE_F16, 131, true},
        HeadsCase{4, 2, 128, 128, false, false, GGML_TYPE_F16, 150, true},
        HeadsCase{4, 2, 128, 128, true, true, GGML_TYPE_Q8_0, 129},
        HeadsCase{2, 2, 256, 256, false, true, GGML_TYPE_F16, 130, true},
        HeadsCase{2, 2, 256, 256, false, false, GGML_TYPE_Q8_0, 131, true}}) {
    const int q_size = c.n_heads * c.head_dim, kv_size = c.n_kv_heads * c.head_dim,
              half = c.n_rope_dims / 2;
    const TestParts parts(random, c.n_rows, q_size + 2 * kv_size, 40, c.of_groups);
    const Floats q_norm = random_floats(random, static_cast<size_t>(c.head_dim));
    const Floats k_norm = random_floats(random, static_cast<size_t>(c.head_dim));
    const Floats bias = random_floats(random, static_cast<size_t>(kv_size));
    std::vector<float2> rope(static_cast<size_t>(c.n_rows * half));
    for (float2& turn : rope) {
      const double angle = static_cast<double>(random() % 1000);
      turn = make_float2(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
    }
    const int64_t row_bytes = cache_bytes(c.cache_type, kv_size) + 16;
    const int n_cells = c.n_rows + 2;
    // [row][q, k, v]
    const Floats got = expect_row_invariant(c.n_rows, [&](const std::vector<int>& rows) {
      std::vector<int64_t> cells;
      std::vector<float2> turns;
      for (const int r : rows) {
        cells.push_back(n_cells - 1 - r);
        turns.insert(turns.end(), rope.begin() + r * half, rope.begin() + (r + 1) * half);
      }
      const DeviceArray<float> parts_on(parts.of(rows)), q_norm_on(q_norm), k_norm_on(k_norm),
          bias_on(bias);
      const DeviceArray<float2> rope_on(turns);
      const DeviceArray<int64_t> cells_on(cells);
      const DeviceArray<std::byte> keys(static_cast<size_t>(n_cells * row_bytes)),
          values(static_cast<size_t>(n_cells * row_bytes));
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
             .cache_type = c.cache_type,
             .keys = keys.get(),
             .values = values.get(),
             .cache_row_bytes = row_bytes,
             .q_out = q.get()},
            nullptr);
      const std::vector<__half> q_back = q.read();
      const std::vector<std::byte> k_back = keys.read(), v_back = values.read();
      Floats to;
      for (size_t r = 0; r < rows.size(); ++r) {
        for (int i = 0; i < q_size; ++i) to.push_back(__half2float(q_back[r * q_size + i]));
        for (const auto* cache : {&k_back, &v_back}) {
          const Floats numbers = cell_numbers(*cache, cells[r], row_bytes, c.cache_type, kv_size);
          to.insert(to.end(), numbers.begin(), numbers.end());
        }
      }
      return to;
    });
    std::vector<double> expected;
    for (int r = 0; r < c.n_rows; ++r) {
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
    // Q8_0: an error of up to 1 / 254 of the largest of 32.
    expect_near(got, expected, c.cache_type == GGML_TYPE_F16 ? 1e-3 : 1.5e-2);
  }
}

// Keys and values that are stored as they come: one part, no norm, no rotation.
struct StoredCache {
  static constexpr int kDim = 64, kHeads = 2, kKvHeads = 1;
  TestParts parts;
  DeviceArray<__half> q{static_cast<size_t>(kRows * kHeads * kDim)};
  DeviceArray<std::byte> keys, values;
  int64_t row_bytes;

  StoredCache(std::mt19937& random, ggml_type type, float scale)
      : parts(random, kRows, (kHeads + 2 * kKvHeads) * kDim, 1),
        keys(static_cast<size_t>(kRows * cache_bytes(type, kDim))),
        values(static_cast<size_t>(kRows * cache_bytes(type, kDim))),
        row_bytes(cache_bytes(type, kDim)) {
    for (float& part : parts.data) part *= scale;
    std::vector<int64_t> cells;
    for (int r = 0; r < kRows; ++r) cells.push_back(r);
    const DeviceArray<float> parts_on(parts.data);
    const DeviceArray<int64_t> cells_on(cells);
    const Parts on = parts.on(parts_on, kRows);
    heads({.q = {.parts = on, .first = 0, .n = kHeads * kDim},
           .k = {.parts = on, .first = kHeads * kDim, .n = kDim},
           .v = {.parts = on, .first = (kHeads + 1) * kDim, .n = kDim},
           .n_rows = kRows,
           .n_heads = kHeads,
           .n_kv_heads = kKvHeads,
           .head_dim = kDim,
           .q_norm = nullptr,
           .k_norm = nullptr,
           .eps = kEps,
           .rotates_pairs = false,
           .n_rope_dims = 0,
           .rope = nullptr,
           .cells = cells_on.get(),
           .cache_type = type,
           .keys = keys.get(),
           .values = values.get(),
           .cache_row_bytes = row_bytes,
           .q_out = q.get()},
          nullptr);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
  const float* value(int row) const {
    return parts.data.data() + static_cast<size_t>(row) * parts.cut.n_outputs() + (kHeads + 1) * kDim;
  }
};

TEST_F(RowsTest, CachesAreQuantisedAsGgmlDoes) {
  std::mt19937 random(8);
  for (const float scale : {0.0f, 1e-6f, 1.0f, 1e3f}) {
    const StoredCache stored(random, GGML_TYPE_Q8_0, scale);
    const std::vector<std::byte> values = stored.values.read();
    for (int r = 0; r < kRows; ++r) {
      std::vector<std::byte> expected(static_cast<size_t>(stored.row_bytes));
      ggml_get_type_traits(GGML_TYPE_Q8_0)
          ->from_float_ref(stored.value(r), expected.data(), StoredCache::kDim);
      EXPECT_EQ(std::memcmp(expected.data(), values.data() + r * stored.row_bytes, expected.size()), 0)
          << "row " << r << " scale " << scale;
    }
  }
}

TEST_F(RowsTest, QueriesAndCachesSaturate) {
  std::mt19937 random(9);
  const StoredCache halves(random, GGML_TYPE_F16, 1e6f);
  Floats q;
  for (const __half x : halves.q.read()) q.push_back(__half2float(x));
  EXPECT_GT(expect_saturated(q), kRows * StoredCache::kDim);
  const StoredCache quants(random, GGML_TYPE_Q8_0, 1e6f);
  for (const StoredCache* stored : {&halves, &quants}) {
    const ggml_type type = stored == &halves ? GGML_TYPE_F16 : GGML_TYPE_Q8_0;
    for (const auto& cache : {stored->keys.read(), stored->values.read()}) {
      for (int r = 0; r < kRows; ++r) {
        const Floats numbers = cell_numbers(cache, r, stored->row_bytes, type, StoredCache::kDim);
        for (const float x : numbers) EXPECT_LE(std::abs(x), 65504.0f);
        EXPECT_GT(*std::max_element(numbers.begin(), numbers.end()), 65000.0f);
      }
    }
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
