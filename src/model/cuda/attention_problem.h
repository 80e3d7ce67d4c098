// Attention on the GPU for tests: problems, ways to compute them, and what they give in double
// precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "model/cuda/attention.h"
#include "model/cuda/attention_fixtures.h"
#include "model/cuda/attention_items.h"
#include "model/cuda/device_array.h"

namespace forerun::cuda {

using Halves = std::vector<__half>;

inline Halves random_halves(std::mt19937& random, size_t n, float scale) {
  std::normal_distribution<float> normal(0.0f, scale);
  Halves to(n);
  for (__half& h : to) h = __float2half(normal(random));
  return to;
}

// Keys or values by number of cell.
struct TestCache {
  std::vector<std::byte> bytes;
  Halves numbers;  // [cell][kv head][head_dim], as attention reads them
};

inline TestCache random_cache(std::mt19937& random, ggml_type type, size_t n) {
  TestCache cache{.bytes = std::vector<std::byte>(ggml_row_size(type, static_cast<int64_t>(n))),
                  .numbers = random_halves(random, n, 1.0f)};
  if (type == GGML_TYPE_F16) {
    std::memcpy(cache.bytes.data(), cache.numbers.data(), cache.bytes.size());
    return cache;
  }
  std::vector<float> numbers;
  for (const __half number : cache.numbers) numbers.push_back(__half2float(number));
  const ggml_type_traits& traits = *ggml_get_type_traits(type);
  traits.from_float_ref(numbers.data(), cache.bytes.data(), static_cast<int64_t>(n));
  traits.to_float(cache.bytes.data(), numbers.data(), static_cast<int64_t>(n));
  for (size_t i = 0; i < n; ++i) cache.numbers[i] = __float2half(numbers[i]);
  return cache;
}

struct Problem {
  AttentionShape shape;
  ggml_type cache_type;
  TestRows rows;
  TestCache keys, values;
  Halves q;  // [row][head][head_dim]

  size_t row_size() const { return static_cast<size_t>(shape.n_heads * shape.head_dim); }
  size_t cell_size() const { return static_cast<size_t>(shape.n_kv_heads * shape.head_dim); }
  size_t cell_bytes() const { return ggml_row_size(cache_type, static_cast<int64_t>(cell_size())); }
};

inline AttentionShape shape_of(int head_dim, int heads_per_kv, float soft_cap = 0.0f) {
  constexpr int kKvHeads = 2;
  return {.head_dim = head_dim,
          .n_heads = kKvHeads * heads_per_kv,
          .n_kv_heads = kKvHeads,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
          .soft_cap = soft_cap};
}

inline Problem problem_of(std::mt19937& random, const AttentionShape& shape, TestRows rows,
                          ggml_type cache_type = GGML_TYPE_F16, float query_scale = 2.0f) {
  Problem problem{.shape = shape,
                  .cache_type = cache_type,
                  .rows = std::move(rows),
                  .keys = {},
                  .values = {},
                  .q = {}};
  int32_t n_cells = 0;
  for (const int32_t cell : problem.rows.cells) n_cells = std::max(n_cells, cell + 1);
  const size_t n = static_cast<size_t>(n_cells) * problem.cell_size();
  problem.keys = random_cache(random, cache_type, n);
  problem.values = random_cache(random, cache_type, n);
  problem.q = random_halves(random, problem.rows.seen.size() * problem.row_size(), query_scale);
  return problem;
}

// A chain of n rows behind a context.
inline TestRows chain(int context, int n, int window = 0) {
  TestRows rows;
  rows.cells.resize(static_cast<size_t>(context + n));
  std::iota(rows.cells.begin(), rows.cells.end(), 0);
  for (int i = 0; i < n; ++i) {
    const int end = context + i + 1;
    rows.seen.push_back({.shared = 0,
                         .own = context,
                         .n_shared = context,
                         .first = window == 0 ? 0 : std::max(0, end - window),
                         .end = end});
  }
  return rows;
}

inline std::vector<int> all_rows(const Problem& problem) {
  std::vector<int> rows(problem.rows.seen.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

struct Way {
  std::vector<int> rows;  // of the problem
  int item_chunks = 1;
  int n_tiles = 1;
  unsigned places = 0;  // seed of the places of cells
  bool in_graph = false;
};

// [row][head * head_dim]; also checks that inputs beyond are zeros.
inline Halves run(const Problem& problem, const Way& way) {
  const AttentionShape& shape = problem.shape;
  const size_t cell_bytes = problem.cell_bytes(), n_cells = problem.keys.bytes.size() / cell_bytes;
  std::vector<int32_t> place(2 * n_cells + 3);  // cells that nobody sees hold NaN
  std::iota(place.begin(), place.end(), 0);
  std::mt19937 random(way.places);
  std::shuffle(place.begin(), place.end(), random);
  std::vector<std::byte> keys(place.size() * cell_bytes, std::byte{0xff}), values = keys;
  for (size_t c = 0; c < n_cells; ++c) {
    const size_t to = static_cast<size_t>(place[c]) * cell_bytes;
    std::memcpy(keys.data() + to, problem.keys.bytes.data() + c * cell_bytes, cell_bytes);
    std::memcpy(values.data() + to, problem.values.bytes.data() + c * cell_bytes, cell_bytes);
  }
  std::vector<int32_t> cells;
  for (const int32_t cell : problem.rows.cells) cells.push_back(place[static_cast<size_t>(cell)]);
  std::vector<SeenCells> seen;
  Halves q;
  for (const int r : way.rows) {
    seen.push_back(problem.rows.seen[static_cast<size_t>(r)]);
    const auto from = problem.q.begin() + static_cast<std::ptrdiff_t>(r * problem.row_size());
    q.insert(q.end(), from, from + static_cast<std::ptrdiff_t>(problem.row_size()));
  }
  AttentionItems items;
  make_attention_items(seen, shape.heads_per_kv(), way.item_chunks, way.n_tiles, items);

  const auto n_rows = static_cast<int>(seen.size());
  const int padded_rows = padded(n_rows);
  const int64_t n_inputs = (static_cast<int64_t>(problem.row_size()) + 63) / 64 * 64 + 64;
  const DeviceArray<std::byte> keys_on(keys), values_on(values);
  const DeviceArray<__half> q_on(q);
  const DeviceArray<int32_t> cells_on(cells), start_on(items.partial_start);
  const DeviceArray<SeenCells> seen_on(seen);
  const DeviceArray<AttentionItem> items_on(items.items);
  const DeviceArray<int32_t> n_items_on(std::vector<int32_t>{static_cast<int32_t>(items.items.size())});
  const DeviceArray<int32_t> item_chunks_on(std::vector<int32_t>{way.item_chunks});
  const DeviceArray<float> partials_on(static_cast<size_t>(items.n_floats(shape)));
  const DeviceArray<__half> x_on(static_cast<size_t>(operand_halves(n_rows, n_inputs)));
  const auto on = [&](const DeviceArray<std::byte>& cache) {
    return CacheRows{.data = cache.get(), .row_bytes = static_cast<int64_t>(cell_bytes)};
  };
  const AttentionWork work{.shape = shape,
                           .cache_type = problem.cache_type,
                           .keys = on(keys_on),
                           .values = on(values_on),
                           .q = q_on.get(),
                           .cells = cells_on.get(),
                           .rows = seen_on.get(),
                           .items = items_on.get(),
                           .n_items = n_items_on.get(),
                           .most_items = static_cast<int>(items.items.size()),
                           .n_rows = n_rows,
                           .n_tiles = way.n_tiles,
                           .item_chunks = item_chunks_on.get(),
                           .partial_start = start_on.get(),
                           .partials = partials_on.get()};
  const Operand x{.data = x_on.get(), .padded_rows = padded_rows, .n_inputs = n_inputs};

  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  if (way.in_graph)
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  attend(work, stream);
  merge(work, x, stream);
  if (way.in_graph) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  }
  const cudaError_t error = cudaStreamSynchronize(stream);
  EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);

  const Halves packed = x_on.read();
  Halves result;
  for (int r = 0; r < n_rows; ++r) {
    for (int64_t k = 0; k < n_inputs; ++k) {
      const __half value = packed[static_cast<size_t>(x.index(k, r))];
      if (k < static_cast<int64_t>(problem.row_size())) {
        result.push_back(value);
      } else {
        EXPECT_EQ(__half2float(value), 0.0f);
      }
    }
  }
  return result;
}

inline std::vector<double> reference(const Problem& problem) {
  const AttentionShape& shape = problem.shape;
  const int dim = shape.head_dim;
  std::vector<double> result;
  for (size_t r = 0; r < problem.rows.seen.size(); ++r) {
    const SeenCells& row = problem.rows.seen[r];
    for (int head = 0; head < shape.n_heads; ++head) {
      const int kv = head / (shape.n_heads / shape.n_kv_heads);
      const __half* q = problem.q.data() + r * problem.row_size() + static_cast<size_t>(head * dim);
      std::vector<double> weights;
      const auto at = [&](const Halves& from, int position) {
        return from.data() +
               static_cast<size_t>(cell_of(problem.rows, row, position)) * problem.cell_size() +
               static_cast<size_t>(kv * dim);
      };
      double largest = -1e300;
      for (int p = row.first; p < row.end; ++p) {
        const __half* key = at(problem.keys.numbers, p);
        double score = 0;
        for (int d = 0; d < dim; ++d) score += double{__half2float(q[d])} * double{__half2float(key[d])};
        score *= shape.scale;
        if (shape.soft_cap > 0) score = shape.soft_cap * std::tanh(score / shape.soft_cap);
        weights.push_back(score);
        largest = std::max(largest, score);
      }
      double sum = 0;
      std::vector<double> values(static_cast<size_t>(dim), 0.0);
      for (int p = row.first; p < row.end; ++p) {
        const double weight = std::exp(weights[static_cast<size_t>(p - row.first)] - largest);
        sum += weight;
        const __half* value = at(problem.values.numbers, p);
        for (int d = 0; d < dim; ++d)
          values[static_cast<size_t>(d)] += weight * double{__half2float(value[d])};
      }
      for (const double value : values) result.push_back(value / sum);
    }
  }
  return result;
}

inline double relative_error(const Halves& got, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = double{__half2float(got[i])} - expected[i];
    error += difference * difference;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace forerun::cuda
