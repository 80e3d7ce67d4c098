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
namespace {

class AttentionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
};

using Halves = std::vector<__half>;

Halves random_halves(std::mt19937& random, size_t n, float scale) {
  std::normal_distribution<float> normal(0.0f, scale);
  Halves to(n);
  for (__half& h : to) h = __float2half(normal(random));
  return to;
}

// Keys and values by number of cell, and queries.
struct Problem {
  AttentionShape shape;
  TestRows rows;
  Halves keys, values;  // [cell][kv head][head_dim]
  Halves q;             // [row][head][head_dim]

  size_t row_size() const { return static_cast<size_t>(shape.n_heads * shape.head_dim); }
  size_t cell_size() const { return static_cast<size_t>(shape.n_kv_heads * shape.head_dim); }
};

AttentionShape shape_of(int head_dim, int heads_per_kv, float soft_cap = 0.0f) {
  constexpr int kKvHeads = 2;
  return {.head_dim = head_dim,
          .n_heads = kKvHeads * heads_per_kv,
          .n_kv_heads = kKvHeads,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
          .soft_cap = soft_cap};
}

Problem problem_of(std::mt19937& random, const AttentionShape& shape, TestRows rows) {
  Problem problem{.shape = shape, .rows = std::move(rows), .keys = {}, .values = {}, .q = {}};
  int32_t n_cells = 0;
  for (const int32_t cell : problem.rows.cells) n_cells = std::max(n_cells, cell + 1);
  const size_t n = static_cast<size_t>(n_cells) * problem.cell_size();
  problem.keys = random_halves(random, n, 1.0f);
  problem.values = random_halves(random, n, 1.0f);
  problem.q = random_halves(random, problem.rows.seen.size() * problem.row_size(), 2.0f);
  return problem;
}

// A chain of n rows behind a context.
TestRows chain(int context, int n, int window = 0) {
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

std::vector<int> all_rows(const Problem& problem) {
  std::vector<int> rows(problem.rows.seen.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

struct Way {
  std::vector<int> rows;  // of the problem
  int item_chunks = 1;
  unsigned places = 0;  // seed of the places of cells
  bool in_graph = false;
};

// [row][head * head_dim]; also checks that inputs beyond are zeros.
Halves run(const Problem& problem, const Way& way) {
  const AttentionShape& shape = problem.shape;
  const size_t n_cells = problem.keys.size() / problem.cell_size();
  std::vector<int32_t> place(2 * n_cells + 3);  // cells that nobody sees hold NaN
  std::iota(place.begin(), place.end(), 0);
  std::mt19937 random(way.places);
  std::shuffle(place.begin(), place.end(), random);
  const __half nan = __float2half(NAN);
  Halves keys(place.size() * problem.cell_size(), nan), values = keys;
  for (size_t c = 0; c < n_cells; ++c) {
    const size_t to = static_cast<size_t>(place[c]) * problem.cell_size(),
                 from = c * problem.cell_size();
    std::copy_n(problem.keys.begin() + from, problem.cell_size(), keys.begin() + to);
    std::copy_n(problem.values.begin() + from, problem.cell_size(), values.begin() + to);
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
  make_attention_items(seen, shape.n_heads / shape.n_kv_heads, way.item_chunks, items);

  const auto n_rows = static_cast<int>(seen.size());
  const int padded_rows = padded(n_rows);
  const int64_t n_inputs = (static_cast<int64_t>(problem.row_size()) + 63) / 64 * 64 + 64;
  const DeviceArray<__half> keys_on(keys), values_on(values), q_on(q);
  const DeviceArray<int32_t> cells_on(cells), start_on(items.partial_start);
  const DeviceArray<SeenCells> seen_on(seen);
  const DeviceArray<AttentionItem> items_on(items.items);
  const DeviceArray<int32_t> n_items_on(std::vector<int32_t>{static_cast<int32_t>(items.items.size())});
  const DeviceArray<int32_t> item_chunks_on(std::vector<int32_t>{way.item_chunks});
  const DeviceArray<float> partials_on(static_cast<size_t>(items.n_floats(shape)));
  const DeviceArray<__half> x_on(static_cast<size_t>(operand_halves(n_rows, n_inputs)));
  const auto cell_bytes = static_cast<int64_t>(problem.cell_size() * sizeof(__half));
  const AttentionWork work{
      .shape = shape,
      .keys = {.data = reinterpret_cast<const std::byte*>(keys_on.get()), .row_bytes = cell_bytes},
      .values = {.data = reinterpret_cast<const std::byte*>(values_on.get()), .row_bytes = cell_bytes},
      .q = q_on.get(),
      .cells = cells_on.get(),
      .rows = seen_on.get(),
      .items = items_on.get(),
      .n_items = n_items_on.get(),
      .n_rows = n_rows,
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

std::vector<double> reference(const Problem& problem) {
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
        const __half* key = at(problem.keys, p);
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
        const __half* value = at(problem.values, p);
        for (int d = 0; d < dim; ++d)
          values[static_cast<size_t>(d)] += weight * double{__half2float(value[d])};
      }
      for (const double value : values) result.push_back(value / sum);
    }
  }
  return result;
}

double relative_error(const Halves& got, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = double{__half2float(got[i])} - expected[i];
    error += difference * difference;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error / norm);
}

bool same_bits(const Halves& a, const Halves& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(__half)) == 0;
}

Halves row_of(const Problem& problem, const Halves& result, size_t row) {
  const auto from = result.begin() + static_cast<std::ptrdiff_t>(row * problem.row_size());
  return {from, from + static_cast<std::ptrdiff_t>(problem.row_size())};
}

constexpr int kItemChunks[] = {1, kGroup, kAllChunks};

void expect_near_reference(const Problem& problem) {
  const std::vector<double> expected = reference(problem);
  for (const int item_chunks : kItemChunks) {
    const Halves got =
        run(problem, {.rows = all_rows(problem), .item_chunks = item_chunks, .places = 7});
    EXPECT_LT(relative_error(got, expected), 2e-3)
        << "item_chunks " << item_chunks << " head_dim " << problem.shape.head_dim << " heads "
        << problem.shape.n_heads << " rows " << problem.rows.seen.size();
  }
}

// Rows together and alone, cut in every way, cells in other places.
void expect_row_invariant(const Problem& problem) {
  const Halves together = run(problem, {.rows = all_rows(problem), .item_chunks = 1, .places = 1});
  for (const int item_chunks : kItemChunks) {
    EXPECT_TRUE(same_bits(
        together, run(problem, {.rows = all_rows(problem), .item_chunks = item_chunks, .places = 2})))
        << "item_chunks " << item_chunks;
  }
  for (const int r : all_rows(problem)) {
    const int item_chunks = kItemChunks[r % 3];
    const Halves alone = run(problem, {.rows = {r}, .item_chunks = item_chunks, .places = 3});
    EXPECT_TRUE(same_bits(row_of(problem, together, static_cast<size_t>(r)), alone))
        << "row " << r << " item_chunks " << item_chunks;
  }
}

TEST_F(AttentionTest, EveryHeadDimNearReference) {
  std::mt19937 random(1);
  for (const int head_dim : {64, 80, 96, 112, 128, 256}) {
    for (const int n : {1, 5, 9, 40}) {
      expect_near_reference(problem_of(random, shape_of(head_dim, 4), chain(300, n)));
    }
  }
}

TEST_F(AttentionTest, EveryNumberOfHeadsNearReference) {
  std::mt19937 random(2);
  for (const int heads_per_kv : {1, 3, 4, 7, 8, 64}) {
    for (const int n : {1, 3, 20}) {
      expect_near_reference(problem_of(random, shape_of(64, heads_per_kv), chain(200, n)));
    }
  }
}

TEST_F(AttentionTest, TreesAndSequencesNearReference) {
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i) {
    const int window = i % 2 == 0 ? 0 : 1 + static_cast<int>(random() % 500);
    const float soft_cap = i % 3 == 0 ? 0.0f : 5.0f;
    const int head_dim = i % 4 == 0 ? 64 : i % 4 == 1 ? 128 : i % 4 == 2 ? 80 : 256;
    expect_near_reference(
        problem_of(random, shape_of(head_dim, 1 + i % 8, soft_cap), random_rows(random, window, 12)));
  }
}

TEST_F(AttentionTest, LongContextNearReference) {
  std::mt19937 random(4);
  expect_near_reference(problem_of(random, shape_of(128, 4), chain(20000, 2)));
  expect_near_reference(problem_of(random, shape_of(64, 2), chain(9000, 3, 4096)));
}

TEST_F(AttentionTest, TreesAndSequencesAreRowInvariant) {
  std::mt19937 random(5);
  for (int i = 0; i < 12; ++i) {
    const int window = i % 2 == 0 ? 0 : 1 + static_cast<int>(random() % 500);
    const float soft_cap = i % 3 == 0 ? 5.0f : 0.0f;
    const int head_dims[] = {64, 80, 96, 112, 128, 256};
    expect_row_invariant(problem_of(random, shape_of(head_dims[i % 6], 1 + i % 8, soft_cap),
                                    random_rows(random, window, 12)));
  }
}

TEST_F(AttentionTest, BordersOfChunksAndGroupsAreRowInvariant) {
  std::mt19937 random(6);
  for (const int length : {1, 127, 128, 129, 511, 512, 513, 2000, 5000}) {
    for (const int n : {1, 6, 20}) {
      expect_row_invariant(problem_of(random, shape_of(128, 4), chain(std::max(0, length - n), n)));
    }
    expect_row_invariant(problem_of(random, shape_of(64, 3), chain(length, 9, 600)));
  }
}

TEST_F(AttentionTest, PromptIsRowInvariant) {
  std::mt19937 random(7);
  const Problem problem = problem_of(random, shape_of(128, 4), chain(700, 150));
  const Halves together = run(problem, {.rows = all_rows(problem), .item_chunks = kAllChunks});
  for (const int r : {0, 1, 15, 16, 67, 68, 149}) {
    EXPECT_TRUE(
        same_bits(row_of(problem, together, static_cast<size_t>(r)), run(problem, {.rows = {r}})));
  }
}

TEST_F(AttentionTest, GraphGivesTheSame) {
  std::mt19937 random(8);
  const Problem problem = problem_of(random, shape_of(128, 4), chain(3000, 7));
  for (const int item_chunks : kItemChunks) {
    const Way direct{.rows = all_rows(problem), .item_chunks = item_chunks};
    Way graph = direct;
    graph.in_graph = true;
    EXPECT_TRUE(same_bits(run(problem, direct), run(problem, graph)));
  }
}

TEST_F(AttentionTest, OtherShapesAreNotSupported) {
  EXPECT_TRUE(attention_supports(shape_of(128, 64)));
  EXPECT_FALSE(attention_supports(shape_of(128, 65)));
  EXPECT_FALSE(attention_supports(shape_of(72, 4)));
}

}  // namespace
}  // namespace forerun::cuda
