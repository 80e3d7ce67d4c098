#include "model/cpu/packed_matrix.h"

#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/test_numbers.h"

namespace forerun {
namespace {

std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::vector<float> values(n);
  fill_normally(values, seed);
  return values;
}

// A matrix of random weights, as a file has it and packed.
struct TestMatrix {
  TestMatrix(const KernelSet& kernels, ggml_type type, int64_t n_in, int64_t n_out)
      : matrix(describe_matrix(kernels, type, n_in, n_out)) {
    const auto weights = random_floats(static_cast<size_t>(n_in * n_out), 1);
    file.resize(ggml_row_size(type, n_in) * static_cast<size_t>(n_out));
    ggml_quantize_chunk(type, weights.data(), file.data(), 0, n_out, n_in, nullptr);
    exact.resize(weights.size());
    ggml_get_type_traits(type)->to_float(file.data(), exact.data(), n_in * n_out);
    matrix.data = file.data();
    if (matrix.format == nullptr) return;
    packed.resize(matrix.n_bytes());
    // In two parts, as several threads do it.
    matrix.pack(file.data(), matrix.n_tiles() / 2, matrix.n_tiles(), packed.data());
    matrix.pack(file.data(), 0, matrix.n_tiles() / 2, packed.data());
    matrix.data = packed.data();
  }

  // Rows of activations in the form that the matrix wants, in `rows`. What is no row's is NaNs.
  OperandRows operand(const KernelSet& kernels, const std::vector<float>& x, int n_rows,
                      std::vector<std::byte>& rows) const {
    const bool floats = matrix.reads_floats();
    const auto n_in = static_cast<size_t>(matrix.n_in);
    const bool has_blocks = !floats && matrix.format != nullptr;
    const int together = has_blocks ? kernels.rows_together : 1;
    const size_t stride = floats       ? n_in * sizeof(float)
                          : has_blocks ? n_in / kActivationBlock * kernels.activation_bytes
                                       : ggml_row_size(matrix.dot_type(), matrix.n_in);
    rows.assign(stride * static_cast<size_t>((n_rows + together - 1) / together), std::byte{0xFF});
    for (int r = 0; r < n_rows; ++r) {
      const float* row = x.data() + static_cast<size_t>(r) * n_in;
      std::byte* to = rows.data() + static_cast<size_t>(r / together) * stride;
      if (floats) {
        std::copy_n(row, n_in, reinterpret_cast<float*>(to));
      } else if (has_blocks) {
        kernels.quantize(row, matrix.n_in, r % together, to);
      } else {
        ggml_get_type_traits_cpu(matrix.dot_type())->from_float(row, to, matrix.n_in);
      }
    }
    return {.data = rows.data(), .stride = stride, .rows_together = together, .n_rows = n_rows};
  }

  PackedMatrix matrix;
  std::vector<std::byte> file;
  std::vector<std::byte> packed;
  std::vector<float> exact;
};

void expect_multiplies(const KernelSet& kernels, ggml_type type, int64_t n_in, int64_t n_out) {
  SCOPED_TRACE(std::string(kernels.name) + " " + ggml_type_name(type) + " " + std::to_string(n_in) +
               "x" + std::to_string(n_out));
  constexpr int kRows = 35;
  const TestMatrix test(kernels, type, n_in, n_out);
  const auto x = random_floats(static_cast<size_t>(kRows * n_in), 2);
  std::vector<std::byte> rows;
  const OperandRows operand = test.operand(kernels, x, kRows, rows);
  const int64_t stride = n_out + 3;
  constexpr float kUntouched = 1234.0f;
  std::vector<float> y(static_cast<size_t>(kRows * stride), kUntouched);
  test.matrix.multiply(0, test.matrix.n_tiles(), operand, y.data(), stride);
  // Activations are rounded to 8 bits of the largest of 32 (or 256) of them: an error of
  // up to 1/254 of it each, of either sign.
  const double bound = 0.03 * std::sqrt(static_cast<double>(n_in)) + 1e-4;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t o = 0; o < n_out; ++o) {
      double expected = 0;
      for (int64_t k = 0; k < n_in; ++k) {
        expected += static_cast<double>(test.exact[static_cast<size_t>(o * n_in + k)]) *
                    static_cast<double>(x[static_cast<size_t>(r * n_in + k)]);
      }
      ASSERT_NEAR(y[static_cast<size_t>(r * stride + o)], expected, bound)
          << "row " << r << ", output " << o;
    }
    for (int64_t o = n_out; o < stride; ++o)
      ASSERT_EQ(y[static_cast<size_t>(r * stride + o)], kUntouched);
  }
  // The same bits from any range of tiles.
  std::vector<float> part(static_cast<size_t>(kRows * stride), kUntouched);
  for (int64_t tile = 0; tile < test.matrix.n_tiles(); ++tile) {
    test.matrix.multiply(tile, tile + 1, operand, part.data() + tile * test.matrix.lanes, stride);
  }
  EXPECT_EQ(part, y);
}

TEST(PackedMatrix, MultipliesMatricesOfAnyShape) {
  for (const KernelSet* kernels : available_kernels()) {
    for (const int64_t n_out : {1, 37, 64}) {
      expect_multiplies(*kernels, GGML_TYPE_Q4_0, 96, n_out);
      expect_multiplies(*kernels, GGML_TYPE_Q8_0, 32, n_out);
      expect_multiplies(*kernels, GGML_TYPE_Q4_K, 256, n_out);
      expect_multiplies(*kernels, GGML_TYPE_F16, 33, n_out);
      expect_multiplies(*kernels, GGML_TYPE_F16, 1, n_out);
    }
  }
}

TEST(PackedMatrix, TypesWithoutAFormatGoThroughGgml) {
  ggml_cpu_init();  // the tables its dot products look numbers up in
  const KernelSet& kernels = best_kernels();
  ASSERT_EQ(find_format(kernels, GGML_TYPE_IQ4_NL), nullptr);
  expect_multiplies(kernels, GGML_TYPE_IQ4_NL, 64, 37);
  expect_multiplies(kernels, GGML_TYPE_Q3_K, 256, 5);
}

}  // namespace
}  // namespace forerun
