// Where activations lie that one node of a graph makes and products of others read.
#pragma once

#include <ggml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/cpu/op.h"
#include "model/cpu/packed_matrix.h"
#include "model/kernels/kernels.h"

namespace forerun {

// Rows of activations: the numbers of all rows, and behind them, where a row has a multiple
// of 32, their quantised blocks, one bundle of rows (KernelSet::rows_together) after
// another. In graphs a tensor of bytes. One thread makes the blocks of a whole bundle, so
// that threads do not write to the same lines of memory.
struct ActivationLayout {
  const KernelSet& kernels;
  int64_t n;  // numbers of a row
  int64_t n_rows;

  bool has_blocks() const { return n % kActivationBlock == 0; }
  int64_t n_bundles() const { return (n_rows + kernels.rows_together - 1) / kernels.rows_together; }
  Range rows_of(Range bundles) const {
    return {.first = bundles.first * kernels.rows_together,
            .end = std::min(bundles.end * kernels.rows_together, n_rows)};
  }
  // A tensor of as many rows; together they have all the bytes.
  NodeOutput output() const {
    const auto n_bytes = static_cast<int64_t>(blocks_offset() + (has_blocks() ? blocks_bytes() : 0));
    return {.type = GGML_TYPE_I8, .n0 = (n_bytes + n_rows - 1) / n_rows, .n1 = n_rows};
  }

  float* floats(const ggml_tensor* tensor, int64_t row) const {
    return static_cast<float*>(tensor->data) + row * n;
  }
  // Makes the blocks, if there are any, of numbers [first, first + count) of a row; both are
  // multiples of 32 then.
  void quantize(const ggml_tensor* tensor, int64_t row, int64_t first, int64_t count) const {
    if (!has_blocks()) return;
    const auto block = static_cast<size_t>(first / kActivationBlock);
    kernels.quantize(floats(tensor, row) + first, count, static_cast<int>(row % kernels.rows_together),
                     bundle(tensor, row) + block * kernels.activation_bytes);
  }

  // Rows as operands. Those of blocks begin with a bundle.
  OperandRows float_rows(const ggml_tensor* tensor, Range rows) const {
    return {.data = reinterpret_cast<const std::byte*>(floats(tensor, rows.first)),
            .stride = static_cast<size_t>(n) * sizeof(float),
            .rows_together = 1,
            .n_rows = static_cast<int>(rows.end - rows.first)};
  }
  OperandRows block_rows(const ggml_tensor* tensor, Range rows) const {
    return {.data = bundle(tensor, rows.first),
            .stride = bundle_bytes(),
            .rows_together = kernels.rows_together,
            .n_rows = static_cast<int>(rows.end - rows.first)};
  }

 private:
  size_t blocks_offset() const {
    constexpr size_t kAlignment = 64;
    const size_t floats_bytes = static_cast<size_t>(n * n_rows) * sizeof(float);
    return (floats_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  size_t bundle_bytes() const {
    return static_cast<size_t>(n / kActivationBlock) * kernels.activation_bytes;
  }
  size_t blocks_bytes() const { return static_cast<size_t>(n_bundles()) * bundle_bytes(); }
  std::byte* bundle(const ggml_tensor* tensor, int64_t row) const {
    return static_cast<std::byte*>(tensor->data) + blocks_offset() +
           static_cast<size_t>(row / kernels.rows_together) * bundle_bytes();
  }
};

}  // namespace forerun
