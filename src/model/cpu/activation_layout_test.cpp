#include "model/cpu/activation_layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace forerun {
namespace {

std::vector<float> numbers_of(int64_t row, int64_t n) {
  std::vector<float> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(1000 * row) + 0.25f);
  return numbers;
}

// Numbers and blocks of all rows lie in the tensor and none over another, whoever makes which.
void expect_rows_apart(const ActivationLayout& layout) {
  const NodeOutput output = layout.output();
  EXPECT_EQ(output.n1, layout.n_rows);
  std::vector<std::byte> bytes(static_cast<size_t>(output.n0 * output.n1), std::byte{0xFF});
  ggml_tensor tensor{};
  tensor.data = bytes.data();
  const int64_t middle = layout.n / 64 * 32;
  for (int64_t row = layout.n_rows - 1; row >= 0; --row) {
    const auto numbers = numbers_of(row, layout.n);
    std::copy(numbers.begin(), numbers.end(), layout.floats(&tensor, row));
    layout.quantize(&tensor, row, middle, layout.n - middle);
    layout.quantize(&tensor, row, 0, middle);
  }

  const int together = layout.kernels.rows_together;
  for (int64_t bundle = 0; bundle < layout.n_bundles(); ++bundle) {
    const Range rows = layout.rows_of({.first = bundle, .end = bundle + 1});
    const size_t n_blocks = static_cast<size_t>(layout.n / kActivationBlock);
    std::vector<std::byte> expected(n_blocks * layout.kernels.activation_bytes, std::byte{0xFF});
    for (int64_t row = rows.first; row < rows.end; ++row) {
      const auto numbers = numbers_of(row, layout.n);
      const OperandRows floats = layout.float_rows(&tensor, {.first = row, .end = rows.end});
      EXPECT_EQ(floats.n_rows, rows.end - row);
      EXPECT_EQ(floats.rows_together, 1);
      EXPECT_TRUE(
          std::equal(numbers.begin(), numbers.end(), reinterpret_cast<const float*>(floats.data)));
      if (!layout.has_blocks()) continue;
      layout.kernels.quantize(numbers.data(), layout.n, static_cast<int>(row % together),
                              expected.data());
    }
    if (!layout.has_blocks()) continue;
    const OperandRows blocks = layout.block_rows(&tensor, {.first = rows.first, .end = layout.n_rows});
    EXPECT_EQ(blocks.n_rows, layout.n_rows - rows.first);
    EXPECT_EQ(blocks.rows_together, together);
    EXPECT_EQ(std::vector(blocks.data, blocks.data + expected.size()), expected);
    EXPECT_EQ(layout.block_rows(&tensor, {.first = 0, .end = layout.n_rows}).data +
                  static_cast<size_t>(bundle) * blocks.stride,
              blocks.data);
  }
}

TEST(ActivationLayout, KeepsRowsApart) {
  for (const KernelSet* kernels : available_kernels()) {
    for (const int64_t n : {1, 31, 32, 33, 96, 160}) {
      for (int64_t n_rows = 1; n_rows <= 5; ++n_rows) {
        SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(n) + " x " +
                     std::to_string(n_rows));
        expect_rows_apart({*kernels, n, n_rows});
      }
    }
  }
}

// Bundles are dealt out to threads; together they make every row once.
TEST(ActivationLayout, BundlesAreAllRows) {
  for (const KernelSet* kernels : available_kernels()) {
    for (int64_t n_rows = 1; n_rows <= 9; ++n_rows) {
      const ActivationLayout layout{*kernels, 32, n_rows};
      for (int count = 1; count <= 4; ++count) {
        int64_t next = 0;
        for (int index = 0; index < count; ++index) {
          const Range rows =
              layout.rows_of(share_of({.index = index, .count = count}, layout.n_bundles()));
          EXPECT_EQ(rows.first % kernels->rows_together, 0);
          if (rows.first >= rows.end) continue;
          EXPECT_EQ(rows.first, next);
          next = rows.end;
        }
        EXPECT_EQ(next, n_rows) << kernels->name << ", " << count << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace forerun
