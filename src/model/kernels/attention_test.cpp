#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/test_numbers.h"
#include "model/kernels/kernels.h"
#include "support/odd_floats.h"

namespace forerun {
namespace {

// One half of a KV cache: the bytes attention reads, and the same numbers as floats.
struct Cells {
  ggml_type type;
  int64_t n_per_cell;
  std::vector<std::byte> bytes;
  std::vector<float> floats;

  Cells(ggml_type cell_type, int n_cells, int64_t n, std::mt19937& rng)
      : type(cell_type),
        n_per_cell(n),
        bytes(ggml_row_size(cell_type, n) * n_cells),
        floats(n_cells * n) {
    fill_normally(floats, rng());
    if (type == GGML_TYPE_F32) {
      std::memcpy(bytes.data(), floats.data(), bytes.size());
    } else {
      ggml_quantize_chunk(type, floats.data(), bytes.data(), 0, n_cells, n, nullptr);
      ggml_get_type_traits(type)->to_float(bytes.data(), floats.data(), n_cells * n);
    }
  }
  size_t row_bytes() const { return ggml_row_size(type, n_per_cell); }
  CellRows rows() const { return {bytes.data(), row_bytes(), type}; }
  void poison(int32_t cell) { std::memset(bytes.data() + cell * row_bytes(), 0xFF, row_bytes()); }
};

// A row as a test thinks of it: where each of its positions lies.
struct Row {
  std::vector<int32_t> cells;
  int first = 0;
};

// Chunks [begin, end) of one call of attend().
struct ChunkRange {
  int begin, end;
};

struct Problem {
  AttentionShape shape;
  Cells keys, values;
  std::vector<Row> rows;
  std::vector<float> q;
  std::vector<float> sinks;  // by head; empty: there are none

  Problem(AttentionShape s, ggml_type key_type, ggml_type value_type, int n_cells, std::mt19937& rng)
      : shape(s),
        keys(key_type, n_cells, s.n_kv_heads * s.head_dim, rng),
        values(value_type, n_cells, s.n_kv_heads * s.head_dim, rng) {}

  int64_t row_floats() const { return int64_t{shape.n_heads} * shape.head_dim; }
  void add_row(Row row, std::mt19937& rng) {
    const size_t n_before = q.size();
    q.resize(n_before + row_floats());
    fill_normally(std::span(q).subspan(n_before), rng());
    rows.push_back(std::move(row));
  }
  int n_chunks() const {
    size_t n = 0;
    for (const Row& row : rows) n = std::max(n, row.cells.size());
    return static_cast<int>(n + kAttentionChunk - 1) / kAttentionChunk;
  }
};

// How the cells of rows are told to attend(): rows [r] have their first n_shared[r]
// cells in a list that is the same pointer for all rows, or in one of their own.
struct Sharing {
  std::vector<int32_t> n_shared;
  bool same_shared = true;
  bool same_own = false;  // all rows have the cells of the longest as their own
};

Sharing nothing_shared(const Problem& problem) {
  return {std::vector<int32_t>(problem.rows.size(), 0), false, false};
}

using Result = std::vector<std::vector<float>>;  // [row][head * dim]

// The partial results of `which` rows for the given calls, merged.
Result attend(const KernelSet& kernels, const Problem& problem, const std::vector<int>& which,
              const Sharing& sharing, const std::vector<ChunkRange>& calls) {
  const AttentionShape& shape = problem.shape;
  const int n_rows = static_cast<int>(which.size());
  const auto longest = std::max_element(which.begin(), which.end(), [&](int a, int b) {
    return problem.rows[a].cells.size() < problem.rows[b].cells.size();
  });
  std::vector<std::vector<int32_t>> lists;
  lists.reserve(2 * n_rows + 2);
  std::vector<VisibleCells> visible;
  std::vector<float> q;
  for (const int r : which) {
    const std::vector<int32_t>& cells = problem.rows[r].cells;
    const int32_t n_shared = std::min(sharing.n_shared[r], static_cast<int32_t>(cells.size()));
    VisibleCells v{};
    v.n_shared = n_shared;
    v.first = problem.rows[r].first;
    v.end = static_cast<int32_t>(cells.size());
    if (visible.empty() || !sharing.same_shared) {
      const int32_t most = *std::max_element(sharing.n_shared.begin(), sharing.n_shared.end());
      const std::vector<int32_t>& from = sharing.same_shared ? problem.rows[*longest].cells : cells;
      lists.emplace_back(from.begin(), from.begin() + std::min<size_t>(most, from.size()));
      v.shared = lists.back().data();
    } else {
      v.shared = visible.front().shared;
    }
    if (visible.empty() || !sharing.same_own) {
      const std::vector<int32_t>& from = sharing.same_own ? problem.rows[*longest].cells : cells;
      lists.emplace_back(from.begin() + n_shared, from.end());
      v.own = lists.back().data();
    } else {
      v.own = visible.front().own;
    }
    visible.push_back(v);
    q.insert(q.end(), problem.q.begin() + r * problem.row_floats(),
             problem.q.begin() + (r + 1) * problem.row_floats());
  }

  const int64_t partial = shape.head_dim + kPartialExtra;
  const int64_t row_stride = shape.n_heads * partial;
  const int64_t call_stride = n_rows * row_stride;
  std::vector<float> partials(calls.size() * call_stride, 123.0f);
  std::vector<float> scratch(kernels.attention_scratch_floats(shape, n_rows));
  for (size_t c = 0; c < calls.size(); ++c) {
    for (int kv_head = 0; kv_head < shape.n_kv_heads; ++kv_head) {
      kernels.attend({.shape = shape,
                      .keys = problem.keys.rows(),
                      .values = problem.values.rows(),
                      .q = q.data(),
                      .q_stride = problem.row_floats(),
                      .rows = visible.data(),
                      .n_rows = n_rows,
                      .kv_head = kv_head,
                      .first_chunk = calls[c].begin,
                      .end_chunk = calls[c].end,
                      .out = partials.data() + c * call_stride,
                      .out_row_stride = row_stride,
                      .scratch = scratch.data()});
    }
  }
  Result result(n_rows, std::vector<float>(problem.row_floats()));
  for (int r = 0; r < n_rows; ++r) {
    for (int h = 0; h < shape.n_heads; ++h) {
      kernels.merge({.partials = partials.data() + r * row_stride + h * partial,
                     .n = static_cast<int>(calls.size()),
                     .stride = call_stride,
                     .head_dim = shape.head_dim,
                     .sink = problem.sinks.empty() ? nullptr : &problem.sinks[h]},
                    result[r].data() + h * shape.head_dim);
    }
  }
  return result;
}

Result attend(const KernelSet& kernels, const Problem& problem, const Sharing& sharing) {
  std::vector<int> all(problem.rows.size());
  std::iota(all.begin(), all.end(), 0);
  return attend(kernels, problem, all, sharing, {{0, problem.n_chunks()}});
}

// Each row by itself, all its cells its own.
Result attend_alone(const KernelSet& kernels, const Problem& problem) {
  Result result;
  for (int r = 0; r < static_cast<int>(problem.rows.size()); ++r) {
    const std::vector<ChunkRange> calls = {{0, problem.n_chunks()}};
    result.push_back(attend(kernels, problem, {r}, nothing_shared(problem), calls)[0]);
  }
  return result;
}

std::vector<double> reference(const Problem& problem, int r) {
  const AttentionShape& shape = problem.shape;
  const Row& row = problem.rows[r];
  const int n = static_cast<int>(row.cells.size());
  std::vector<double> y(problem.row_floats(), 0.0);
  for (int h = 0; h < shape.n_heads; ++h) {
    const int kv_head = h / (shape.n_heads / shape.n_kv_heads);
    const float* q = problem.q.data() + r * problem.row_floats() + h * shape.head_dim;
    const auto at = [&](const Cells& cells, int p) {
      return cells.floats.data() + row.cells[p] * cells.n_per_cell + kv_head * shape.head_dim;
    };
    std::vector<double> weights(n, 0.0);
    double largest = -kInf, sum = 0.0;
    for (int p = row.first; p < n; ++p) {
      const float* k = at(problem.keys, p);
      for (int d = 0; d < shape.head_dim; ++d) weights[p] += static_cast<double>(q[d]) * k[d];
      weights[p] *= shape.scale;
      if (shape.soft_cap > 0) weights[p] = shape.soft_cap * std::tanh(weights[p] / shape.soft_cap);
      largest = std::max(largest, weights[p]);
    }
    if (!problem.sinks.empty()) {
      largest = std::max<double>(largest, problem.sinks[h]);
      sum = std::exp(problem.sinks[h] - largest);
    }
    for (int p = row.first; p < n; ++p) sum += weights[p] = std::exp(weights[p] - largest);
    for (int p = row.first; p < n; ++p) {
      const float* v = at(problem.values, p);
      for (int d = 0; d < shape.head_dim; ++d) y[h * shape.head_dim + d] += weights[p] / sum * v[d];
    }
  }
  return y;
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << i << ": " << a[i] << " and " << b[i];
  }
}
void expect_same_bits(const Result& a, const Result& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t r = 0; r < a.size(); ++r) {
    SCOPED_TRACE("row " + std::to_string(r));
    expect_same_bits(a[r], b[r]);
  }
}

class AttentionTest : public testing::TestWithParam<const KernelSet*> {
 protected:
  static void SetUpTestSuite() { ggml_cpu_init(); }
  const KernelSet& kernels() const { return *GetParam(); }
  int uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }
  // [0, n) in some order.
  std::vector<int32_t> shuffled(int n) {
    std::vector<int32_t> cells(n);
    std::iota(cells.begin(), cells.end(), 0);
    std::shuffle(cells.begin(), cells.end(), rng_);
    return cells;
  }

  // `n_rows` rows that see a prompt of `n_prompt` cells and then up to three cells of a
  // tree each; every third has a window.
  Problem tree(AttentionShape shape, ggml_type keys, ggml_type values, int n_prompt, int n_rows) {
    const int n_cells = n_prompt + n_rows + 5;
    Problem problem(shape, keys, values, n_cells, rng_);
    const std::vector<int32_t> cells = shuffled(n_cells);
    for (int r = 0; r < n_rows; ++r) {
      Row row{{cells.begin(), cells.begin() + n_prompt}};
      for (int depth = uniform(0, 2); depth >= 0; --depth) {
        row.cells.push_back(cells[n_prompt + std::max(0, r - depth)]);
      }
      if (r % 3 == 2) row.first = uniform(0, static_cast<int>(row.cells.size()) - 1);
      problem.add_row(std::move(row), rng_);
    }
    return problem;
  }
  Sharing shared_prompt(const Problem& problem, int n_prompt) {
    return {std::vector<int32_t>(problem.rows.size(), n_prompt), true, false};
  }
  // `n_rows` rows of a prompt, each seeing one cell more than the one before.
  Problem chain(AttentionShape shape, ggml_type type, int n_past, int n_rows) {
    Problem problem(shape, type, type, n_past + n_rows + 3, rng_);
    const std::vector<int32_t> cells = shuffled(n_past + n_rows);
    for (int r = 0; r < n_rows; ++r) {
      problem.add_row({{cells.begin(), cells.begin() + n_past + r + 1}}, rng_);
    }
    return problem;
  }

  std::mt19937 rng_{11};
};

constexpr AttentionShape kShape{.head_dim = 64, .n_heads = 6, .n_kv_heads = 2, .scale = 0.125f};

TEST_P(AttentionTest, IsNearTheExactValue) {
  const ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0};
  const std::pair<int, int> heads[] = {{1, 1}, {4, 2}, {9, 3}, {7, 1}, {40, 1}, {4, 4}};
  int next = 0;
  for (const int head_dim : {8, 24, 32, 40, 64, 80, 96, 128, 256, 512, 576}) {
    for (const auto& [n_heads, n_kv_heads] : heads) {
      if (head_dim > 128 && n_heads > 8) continue;
      const AttentionShape shape{head_dim, n_heads, n_kv_heads, 1.0f / std::sqrt(float(head_dim)),
                                 next % 2 == 0 ? 0.0f : 2.5f};
      ggml_type key_type = types[next % 3], value_type = types[next / 3 % 3];
      ++next;
      if (head_dim % 32 != 0 && key_type == GGML_TYPE_Q8_0) key_type = GGML_TYPE_F16;
      if (head_dim % 32 != 0 && value_type == GGML_TYPE_Q8_0) value_type = GGML_TYPE_F32;
      const int n_prompt = uniform(0, 300);
      Problem problem = tree(shape, key_type, value_type, n_prompt, uniform(1, 6));
      if (next % 4 < 2) {  // below all scores, among them and above
        for (int h = 0; h < n_heads; ++h) problem.sinks.push_back(static_cast<float>(uniform(-9, 9)));
      }
      const Result result = attend(kernels(), problem, shared_prompt(problem, n_prompt));
      for (size_t r = 0; r < result.size(); ++r) {
        const std::vector<double> exact = reference(problem, static_cast<int>(r));
        for (size_t i = 0; i < exact.size(); ++i) {
          // Values are around 1, and scores, up to about 5, have errors of some 1e-6.
          ASSERT_NEAR(result[r][i], exact[i], 1e-5) << "head_dim " << head_dim << ", heads " << n_heads
                                                    << " / " << n_kv_heads << ", row " << r;
        }
      }
    }
  }
}

TEST_P(AttentionTest, TreeRowsAreTheSameBitsAloneAndTogether) {
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0}) {
    for (const int n_prompt : {0, 5, 16, 100, 128, 259, 390}) {
      AttentionShape shape = kShape;
      shape.soft_cap = n_prompt % 2 == 0 ? 0.0f : 3.0f;
      const Problem problem = tree(shape, type, type, n_prompt, 23);
      const Result alone = attend_alone(kernels(), problem);
      expect_same_bits(attend(kernels(), problem, shared_prompt(problem, n_prompt)), alone);
      // A row's list may end anywhere in what it shares.
      Sharing uneven = shared_prompt(problem, n_prompt);
      for (int32_t& n : uneven.n_shared) n = uniform(0, n_prompt);
      expect_same_bits(attend(kernels(), problem, uneven), alone);
      uneven.same_shared = false;
      expect_same_bits(attend(kernels(), problem, uneven), alone);
    }
  }
}

TEST_P(AttentionTest, ChainRowsAreTheSameBitsAloneAndTogether) {
  for (const int n_past : {0, 3, 126, 200}) {
    Problem problem = chain(kShape, GGML_TYPE_F16, n_past, 70);
    for (size_t r = 0; r < problem.rows.size(); r += 3) problem.rows[r].first = uniform(0, n_past);
    const Result alone = attend_alone(kernels(), problem);
    Sharing sharing{std::vector<int32_t>(problem.rows.size(), n_past), true, true};
    expect_same_bits(attend(kernels(), problem, sharing), alone);
    std::fill(sharing.n_shared.begin(), sharing.n_shared.end(), 0);
    expect_same_bits(attend(kernels(), problem, sharing), alone);
  }
}

TEST_P(AttentionTest, OrderAndNumberOfRowsChangeNothing) {
  const int n_prompt = 150;
  const Problem problem = tree(kShape, GGML_TYPE_F16, GGML_TYPE_F16, n_prompt, 30);
  const Sharing sharing = shared_prompt(problem, n_prompt);
  const Result alone = attend_alone(kernels(), problem);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<int> which = shuffled(30);
    which.resize(uniform(1, 30));
    const Result result = attend(kernels(), problem, which, sharing, {{0, problem.n_chunks()}});
    for (size_t i = 0; i < which.size(); ++i) expect_same_bits(result[i], alone[which[i]]);
  }
}

TEST_P(AttentionTest, PlacesOfCellsChangeNothing) {
  const int n_prompt = 210;
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_Q8_0}) {
    Problem problem = tree(kShape, type, type, n_prompt, 6);
    const Result before = attend(kernels(), problem, shared_prompt(problem, n_prompt));
    const Problem copy = problem;
    const std::vector<int32_t> places = shuffled(n_prompt + 6 + 5);
    for (size_t i = 0; i < places.size(); ++i) {
      for (const auto& [to, from] :
           {std::pair(&problem.keys, &copy.keys), {&problem.values, &copy.values}}) {
        std::memcpy(to->bytes.data() + places[i] * to->row_bytes(),
                    from->bytes.data() + i * from->row_bytes(), to->row_bytes());
      }
    }
    for (Row& row : problem.rows) {
      for (int32_t& cell : row.cells) cell = places[cell];
    }
    expect_same_bits(attend(kernels(), problem, shared_prompt(problem, n_prompt)), before);
  }
}

TEST_P(AttentionTest, OneCallAndMergedChunksAreTheSameBits) {
  const int n_prompt = 700;
  Problem problem = tree(kShape, GGML_TYPE_F16, GGML_TYPE_F16, n_prompt, 9);
  problem.rows[1].first = 600;  // sees nothing of the first chunks
  problem.rows[3].cells.resize(100);
  const Sharing sharing = shared_prompt(problem, n_prompt);
  const int n = problem.n_chunks();
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const Result whole = attend(kernels(), problem, all, sharing, {{0, n}});
  for (int prefix = 0; prefix <= n; ++prefix) {
    std::vector<ChunkRange> calls = {{0, prefix}};
    for (int chunk = prefix; chunk < n; ++chunk) calls.push_back({chunk, chunk + 1});
    calls.push_back({n, n + 3});  // beyond the end
    expect_same_bits(attend(kernels(), problem, all, sharing, calls), whole);
  }
}

// NaNs in cells that no row sees, or only others.
TEST_P(AttentionTest, UnseenCellsChangeNothing) {
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0}) {
    Problem problem = chain(kShape, type, 120, 40);
    for (size_t r = 0; r < problem.rows.size(); ++r) {
      if (r % 2 == 1) problem.rows[r].first = 50;
    }
    const Sharing sharing{std::vector<int32_t>(40, 120), true, true};
    const Result before = attend(kernels(), problem, sharing);
    // Row 25 is the first that sees position 145; odd rows do not see position 49.
    const std::vector<int32_t> cells = problem.rows.back().cells;
    const auto poison = [&](int32_t cell) {
      problem.keys.poison(cell);
      problem.values.poison(cell);
    };
    for (int cell = 160; cell < 163; ++cell) poison(cell);
    expect_same_bits(attend(kernels(), problem, sharing), before);
    poison(cells[49]);
    poison(cells[145]);
    const Result after = attend(kernels(), problem, sharing);
    for (int r = 0; r < 40; ++r) {
      SCOPED_TRACE("row " + std::to_string(r));
      if (r % 2 == 1 && r < 25) {
        expect_same_bits(after[r], before[r]);
      } else {
        EXPECT_TRUE(std::isnan(after[r][0]));
      }
    }
  }
}

TEST_P(AttentionTest, RowsThatSeeNothingAreEmpty) {
  const Problem problem = tree(kShape, GGML_TYPE_F16, GGML_TYPE_F16, 10, 1);
  const VisibleCells row{.shared = nullptr, .own = nullptr, .n_shared = 0, .first = 0, .end = 0};
  const int64_t partial = kShape.head_dim + kPartialExtra;
  std::vector<float> out(kShape.n_heads * partial, 1.0f), y(kShape.head_dim, 1.0f);
  std::vector<float> scratch(kernels().attention_scratch_floats(kShape, 1));
  kernels().attend({.shape = kShape,
                    .keys = problem.keys.rows(),
                    .values = problem.values.rows(),
                    .q = problem.q.data(),
                    .q_stride = problem.row_floats(),
                    .rows = &row,
                    .n_rows = 1,
                    .kv_head = 0,
                    .first_chunk = 0,
                    .end_chunk = 2,
                    .out = out.data(),
                    .out_row_stride = kShape.n_heads * partial,
                    .scratch = scratch.data()});
  EXPECT_EQ(out[kShape.head_dim], -kInf);
  EXPECT_EQ(out[kShape.head_dim + 1], 0.0f);
  EXPECT_EQ(out[3 * partial], 1.0f);  // another KV head's
  const float sink = 3.0f;
  for (const float* of : {static_cast<const float*>(nullptr), &sink}) {
    kernels().merge(
        {.partials = out.data(), .n = 1, .stride = partial, .head_dim = kShape.head_dim, .sink = of},
        y.data());
    EXPECT_EQ(y, std::vector<float>(kShape.head_dim, 0.0f));
  }
}

// Weights come out one by one where values are unit vectors: cell 0 has score 0, the
// others `scores`.
std::vector<float> weights_of(const KernelSet& kernels, const std::vector<float>& scores) {
  const int n = kAttentionChunk;
  const AttentionShape shape{.head_dim = n, .n_heads = 1, .n_kv_heads = 1, .scale = 1.0f};
  std::mt19937 rng(1);
  Problem problem(shape, GGML_TYPE_F32, GGML_TYPE_F32, n, rng);
  std::vector<float> keys(n * n, 0.0f), values(n * n, 0.0f);
  for (int i = 0; i < n; ++i) {
    if (i > 0) keys[i * n] = scores.at(i - 1);
    values[i * n + i] = 1.0f;
  }
  std::memcpy(problem.keys.bytes.data(), keys.data(), problem.keys.bytes.size());
  std::memcpy(problem.values.bytes.data(), values.data(), problem.values.bytes.size());
  std::vector<int32_t> cells(n);
  std::iota(cells.begin(), cells.end(), 0);
  const VisibleCells row{.shared = cells.data(), .own = nullptr, .n_shared = n, .first = 0, .end = n};
  std::vector<float> q(n, 0.0f), out(n + kPartialExtra);
  q[0] = 1.0f;
  std::vector<float> scratch(kernels.attention_scratch_floats(shape, 1));
  kernels.attend({.shape = shape,
                  .keys = problem.keys.rows(),
                  .values = problem.values.rows(),
                  .q = q.data(),
                  .q_stride = n,
                  .rows = &row,
                  .n_rows = 1,
                  .kv_head = 0,
                  .first_chunk = 0,
                  .end_chunk = 1,
                  .out = out.data(),
                  .out_row_stride = n + kPartialExtra,
                  .scratch = scratch.data()});
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[n], 0.0f);
  return {out.begin() + 1, out.begin() + n};
}

TEST_P(AttentionTest, WeightsAreWithinOneUnitInTheLastPlace) {
  std::uniform_real_distribution<float> uniform_score(-106.0f, 0.0f);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> scores(kAttentionChunk - 1);
    for (float& s : scores) s = uniform_score(rng_) * (trial % 2 == 0 ? 1.0f : 0.01f);
    const std::vector<float> weights = weights_of(kernels(), scores);
    for (size_t i = 0; i < scores.size(); ++i) {
      const double exact = std::exp(static_cast<double>(scores[i]));
      const float near = static_cast<float>(exact);
      const double unit = static_cast<double>(std::nextafter(near, 1.0f)) - near;
      ASSERT_NEAR(weights[i], exact, unit) << "score " << scores[i];
    }
  }
}

TEST_P(AttentionTest, WeightsAreExactAtTheirEnds) {
  std::vector<float> scores(kAttentionChunk - 1, -kInf);
  scores[1] = 0.0f;
  scores[2] = -0.0f;
  scores[3] = -104.0f;
  scores[4] = -1e30f;
  scores[100] = -std::numeric_limits<float>::max();
  const std::vector<float> weights = weights_of(kernels(), scores);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(weights[i]),
              std::bit_cast<uint32_t>(i == 1 || i == 2 ? 1.0f : 0.0f));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionTest, testing::ValuesIn(available_kernels()),
                         [](const auto& set) { return std::string(set.param->name); });

}  // namespace
}  // namespace forerun
