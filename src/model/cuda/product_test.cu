// Products against double precision, and bit for bit against every row alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/check.h"
#include "model/cuda/device_array.h"
#include "model/cuda/product_fixtures.h"
#include "model/cuda/rows.h"

namespace forerun::cuda {
namespace {

// Adds the parts, those of a group in order and then the groups: [row][output, filled up].
std::vector<float> added(const std::vector<float>& data, const Parts& parts, int n_rows) {
  std::vector<float> sums(static_cast<size_t>(n_rows) * parts.n_outputs);
  const int per_group = parts.of_groups ? 1 : Cut::kGroup, per_part = Cut::kGroup / per_group;
  for (int output = 0; output < parts.n_outputs; ++output) {
    const Cut::Runs runs = parts.cut.runs(output);
    const int first = runs.first / per_part, end = runs.last / per_part + 1;
    for (int row = 0; row < n_rows; ++row) {
      const size_t at = static_cast<size_t>(row) * parts.n_outputs + output;
      const auto part = [&](int i) { return data[(i - first) * parts.stride + at]; };
      for (int begin = first; begin < end;) {
        const int group_end = std::min((begin / per_group + 1) * per_group, end);
        float of_group = part(begin);
        for (int i = begin + 1; i < group_end; ++i) of_group += part(i);
        sums[at] = begin == first ? of_group : sums[at] + of_group;
        begin = group_end;
      }
    }
  }
  return sums;
}

// As a kernel that reads the parts has it: [row][output, filled up]. `read_parts` gets these.
std::vector<float> product(const Matrix& matrix, const Rows& rows, const std::vector<int>& chosen,
                           std::vector<float>* read_parts = nullptr) {
  const int n = static_cast<int>(chosen.size()), n_outputs = matrix.cut().n_outputs();
  const int64_t n_inputs = padded_inputs(*matrix.format, matrix.n_in);
  const DeviceArray<__half> x(rows.operand(chosen, n_inputs));
  const DeviceArray<float> parts(static_cast<size_t>(matrix.most_parts(n)) * n * n_outputs);
  const DeviceArray<float> y(static_cast<size_t>(n) * n_outputs);
  multiply(matrix, {.data = x.get(), .padded_rows = padded(n), .n_inputs = n_inputs}, n, parts.get(),
           nullptr);
  finish({.parts = parts_of(matrix, n, parts.get()), .first = 0, .n = n_outputs}, n, 0, y.get(),
         nullptr);
  if (read_parts != nullptr) *read_parts = parts.read();
  return y.read();
}

int n_different_rows(const Matrix& matrix, const std::vector<float>& together,
                     const std::vector<int>& chosen, const std::vector<std::vector<float>>& expected) {
  int n = 0;
  for (size_t row = 0; row < chosen.size(); ++row) {
    n += 0 != std::memcmp(&together[row * matrix.n_out], expected[chosen[row]].data(),
                          matrix.n_out * sizeof(float));
  }
  return n;
}

class ProductTest : public testing::TestWithParam<ggml_type> {
 protected:
  void SetUp() override {
    if (!has_device()) GTEST_SKIP() << "no CUDA device";
  }
  const Format& format() const { return *format_of(GetParam()); }
  double tolerance() const { return GetParam() == GGML_TYPE_BF16 ? 2e-5 : 1e-5; }

  void pack_into(const std::vector<std::byte>& file, int64_t n_in, int64_t n_out, std::byte* to) {
    DeviceArray<std::byte> rows(file);
    pack(format(), rows.get(), n_in, n_out, to, nullptr);
    check(cudaDeviceSynchronize());
  }
  void check_shape(int64_t n_in, int64_t n_out);
  void check_many_rows(int64_t n_in, int64_t n_out);
};

void ProductTest::check_shape(int64_t n_in, int64_t n_out) {
  SCOPED_TRACE(std::to_string(n_out) + " x " + std::to_string(n_in));
  Random random(static_cast<unsigned>(n_in * 7 + n_out));
  const std::vector<std::byte> file = random_file_rows(GetParam(), n_in, n_out, random);
  const Rows rows(kMaxRows, n_in, random);
  Matrix matrix = matrix_of(format(), n_in, n_out);
  DeviceArray<std::byte> packed(matrix.n_bytes());
  check(cudaMemset(packed.get(), 0xff, matrix.n_bytes()));
  pack_into(file, n_in, n_out, packed.get());
  matrix.data = packed.get();

  std::vector<std::vector<float>> alone;
  for (int row = 0; row < kMaxRows; ++row) alone.push_back(product(matrix, rows, {row}));
  RelativeError error;  // a single output may be near zero by chance, so of few outputs many rows count
  for (int row = 0; row < kMaxRows; row += n_out < 100 ? 1 : 21) {
    error.add(alone[row].data(), reference(GetParam(), file, rows, row));
    for (int64_t output = n_out; output < matrix.n_out; ++output) ASSERT_EQ(alone[row][output], 0.f);
  }
  EXPECT_LT(error.value(), tolerance());

  std::vector<int> order(kMaxRows);
  std::iota(order.begin(), order.end(), 0);
  const bool is_large = n_in * n_out > 4'000'000;
  for (int n = 1; n <= kMaxRows; ++n) {
    if (is_large && n > 9 && n % 16 > 1 && n % 16 < 15) continue;
    std::shuffle(order.begin(), order.end(), random);
    const std::vector<int> chosen(order.begin(), order.begin() + n);
    EXPECT_EQ(n_different_rows(matrix, product(matrix, rows, chosen), chosen, alone), 0) << n << " rows";
  }
}

TEST_P(ProductTest, RowsDoNotDependOnOthers) {
  const std::pair<int64_t, int64_t> shapes[] = {{576, 1},     {576, 576},   {576, 1000},  {1536, 192},
                                                {1536, 576},  {4096, 1},    {4096, 1000}, {14336, 192},
                                                {4096, 4096}, {14336, 4096}};
  for (const auto& [n_in, n_out] : shapes) {
    if (n_in % ggml_blck_size(GetParam()) == 0) check_shape(n_in, n_out);
  }
}

// More rows than an operand holds have the bits of passes with as many as it holds.
void ProductTest::check_many_rows(int64_t n_in, int64_t n_out) {
  SCOPED_TRACE(std::to_string(n_out) + " x " + std::to_string(n_in));
  constexpr int kRows = 8 * kMaxRows;
  Random random(static_cast<unsigned>(n_in * 5 + n_out));
  const Rows rows(kRows, n_in, random);
  Matrix matrix = matrix_of(format(), n_in, n_out);
  const DeviceArray<std::byte> packed(matrix.n_bytes());
  pack_into(random_file_rows(GetParam(), n_in, n_out, random), n_in, n_out, packed.get());
  matrix.data = packed.get();

  std::vector<int> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<float>> expected;
  for (int first = 0; first < kRows; first += kMaxRows) {
    const std::vector<int> chosen(order.begin() + first, order.begin() + first + kMaxRows);
    const std::vector<float> y = product(matrix, rows, chosen);
    for (int row = 0; row < kMaxRows; ++row) {
      const auto of_row = y.begin() + row * matrix.n_out;
      expected.emplace_back(of_row, of_row + matrix.n_out);
    }
  }
  for (const int n : {65, 128, 129, 192, 200, 256, 257, 330, 512}) {
    if (n_out > 20'000 && n != 200 && n != 512) continue;  // that many outputs take their time
    std::shuffle(order.begin(), order.end(), random);
    const std::vector<int> chosen(order.begin(), order.begin() + n);
    EXPECT_EQ(n_different_rows(matrix, product(matrix, rows, chosen), chosen, expected), 0)
        << n << " rows";
  }
}

TEST_P(ProductTest, ManyRowsHaveTheBitsOfFew) {
  const std::pair<int64_t, int64_t> shapes[] = {
      {256, 1},       // one tile, few stages
      {576, 1000},    // a run for every stage; depths of 128 do not divide it
      {1000, 300},    // nor does 32 this
      {4096, 600},    // as many runs to a tile as there may be
      {14336, 600},   // and long ones
      {4096, 4096},   // borders of tiles within runs
      {512, 28672},   // two or three runs to a tile
      {256, 69120}};  // more tiles than runs elsewhere: one part each
  for (const auto& [n_in, n_out] : shapes) {
    if (n_in % ggml_blck_size(GetParam()) == 0) check_many_rows(n_in, n_out);
  }
}

TEST_P(ProductTest, PartsAreAddedInGroups) {
  constexpr int64_t kIn = 4096, kOut = 2100;
  Random random(7);
  const Rows rows(300, kIn, random);
  Matrix matrix = matrix_of(format(), kIn, kOut);
  const DeviceArray<std::byte> packed(matrix.n_bytes());
  pack_into(random_file_rows(GetParam(), kIn, kOut, random), kIn, kOut, packed.get());
  matrix.data = packed.get();
  for (const int n : {1, 64, 100, 200, 300}) {
    std::vector<int> chosen(n);
    std::iota(chosen.begin(), chosen.end(), 0);
    std::vector<float> parts;
    const std::vector<float> y = product(matrix, rows, chosen, &parts);
    const std::vector<float> expected = added(parts, parts_of(matrix, n, nullptr), n);
    EXPECT_EQ(std::memcmp(y.data(), expected.data(), expected.size() * sizeof(float)), 0)
        << n << " rows";
  }
}

TEST_P(ProductTest, MatricesBehindEachOther) {
  constexpr int64_t kIn = 1536, kFirst = 192, kSecond = 320;
  Random random(5);
  const auto first = random_file_rows(GetParam(), kIn, kFirst, random);
  const auto second = random_file_rows(GetParam(), kIn, kSecond, random);
  const Rows rows(3, kIn, random);
  const Matrix first_matrix = matrix_of(format(), kIn, kFirst),
               second_matrix = matrix_of(format(), kIn, kSecond);
  Matrix both = first_matrix;
  both.n_out += second_matrix.n_out;
  ASSERT_EQ(both.n_bytes(), first_matrix.n_bytes() + second_matrix.n_bytes());
  DeviceArray<std::byte> packed(both.n_bytes());
  pack_into(first, kIn, kFirst, packed.get());
  pack_into(second, kIn, kSecond, packed.get() + first_matrix.n_bytes());
  both.data = packed.get();

  const std::vector<float> y = product(both, rows, {0, 1, 2});
  RelativeError of_first, of_second;
  for (int row = 0; row < 3; ++row) {
    const float* of_row = &y[static_cast<size_t>(row) * both.n_out];
    of_first.add(of_row, reference(GetParam(), first, rows, row));
    of_second.add(of_row + first_matrix.n_out, reference(GetParam(), second, rows, row));
  }
  EXPECT_LT(of_first.value(), tolerance());
  EXPECT_LT(of_second.value(), tolerance());
}

// Several products one behind the other overlap; replayed from a graph as well.
TEST_P(ProductTest, InAGraph) {
  constexpr int64_t kIn = 4096, kOut = 1000;
  constexpr int kRows = 5, kProducts = 8;
  Random random(6);
  const Rows rows(kRows * kProducts, kIn, random);
  Matrix matrix = matrix_of(format(), kIn, kOut);
  DeviceArray<std::byte> packed(matrix.n_bytes());
  pack_into(random_file_rows(GetParam(), kIn, kOut, random), kIn, kOut, packed.get());
  matrix.data = packed.get();

  const size_t n_floats = static_cast<size_t>(matrix.most_parts(kRows)) * kRows * matrix.n_out;
  const int64_t n_x = padded_inputs(format(), kIn) * padded(kRows);
  std::vector<__half> operands;
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < kProducts; ++i) {
    std::vector<int> chosen(kRows);
    std::iota(chosen.begin(), chosen.end(), i * kRows);
    const auto operand = rows.operand(chosen, padded_inputs(format(), kIn));
    operands.insert(operands.end(), operand.begin(), operand.end());
    expected.push_back(product(matrix, rows, chosen));
  }
  DeviceArray<__half> x(operands);
  DeviceArray<float> parts(n_floats * kProducts);

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kProducts; ++i) {
    const Operand operand{.data = x.get() + i * n_x,
                          .padded_rows = padded(kRows),
                          .n_inputs = padded_inputs(format(), kIn)};
    multiply(matrix, operand, kRows, parts.get() + i * n_floats, stream);
  }
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&executable, graph, 0));
  for (int replay = 0; replay < 3; ++replay) {
    check(cudaMemset(parts.get(), 0xff, n_floats * kProducts * sizeof(float)));
    check(cudaDeviceSynchronize());
    check(cudaGraphLaunch(executable, stream));
    check(cudaStreamSynchronize(stream));
    const std::vector<float> all = parts.read();
    for (int i = 0; i < kProducts; ++i) {
      const std::vector<float> data(all.begin() + i * n_floats, all.begin() + (i + 1) * n_floats);
      const std::vector<float> y = added(data, parts_of(matrix, kRows, nullptr), kRows);
      EXPECT_EQ(std::memcmp(y.data(), expected[i].data(), y.size() * sizeof(float)), 0);
    }
  }
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
}

INSTANTIATE_TEST_SUITE_P(Types, ProductTest, testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

// Needs no device: every stage has a run, and few runs touch a tile.
TEST(ProductCutTest, NoRunIsEmpty) {
  for (const ggml_type type : kTypes) {
    const Format* format = format_of(type);
    ASSERT_NE(format, nullptr);
    for (const int64_t n_in : {32, 576, 1536, 4096, 14336}) {
      for (const int64_t n_out : {1, 192, 1000, 4096, 28672, 128256}) {
        const Matrix matrix = matrix_of(*format, n_in, n_out);
        const Cut cut = matrix.cut();
        for (int run = 0; run < cut.n_runs; ++run) ASSERT_LT(cut.first(run), cut.first(run + 1));
        ASSERT_EQ(cut.first(cut.n_runs), cut.n_tiles * cut.n_stages);
        for (int stage = 0; stage < cut.n_tiles * cut.n_stages; ++stage) {
          const int run = cut.run_of(stage);
          ASSERT_LE(cut.first(run), stage);
          ASSERT_LT(stage, cut.first(run + 1));
        }
        EXPECT_LE(matrix.most_parts(1), 34);
      }
    }
    for (int64_t n_in = 32; n_in < 2048; n_in += 32) {
      for (int n_tiles = 1; n_tiles < 300; ++n_tiles) {
        const Cut cut = matrix_of(*format, n_in, int64_t{n_tiles} * format->tile_rows).cut();
        for (int tile = 0; tile < n_tiles; ++tile)
          ASSERT_LE(cut.runs(tile * cut.tile_rows).n_groups(), Cut::kMostGroups);
      }
    }
  }
  EXPECT_EQ(format_of(GGML_TYPE_F32), nullptr);
}

}  // namespace
}  // namespace forerun::cuda
