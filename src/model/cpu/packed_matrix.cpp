#include "model/cpu/packed_matrix.h"

#include <ggml-cpu.h>

#include <algorithm>

#include "core/check.h"

namespace forerun {
namespace {

// Rows of the last, partly used tile that are computed at a time.
constexpr int kTailRows = 32;
constexpr int kMaxLanes = 16;

}  // namespace

PackedMatrix describe_matrix(const KernelSet& kernels, ggml_type type, int64_t n_in, int64_t n_out) {
  return {.type = type,
          .n_in = n_in,
          .n_out = n_out,
          .lanes = kernels.lanes,
          .format = find_format(kernels, type)};
}

size_t PackedMatrix::tile_bytes() const {
  if (format == nullptr) return static_cast<size_t>(lanes) * ggml_row_size(type, n_in);
  return static_cast<size_t>(n_in / format->block_size) * format->block_bytes;
}

ggml_type PackedMatrix::dot_type() const {
  return ggml_get_type_traits_cpu(type)->vec_dot_type;
}

bool PackedMatrix::reads_floats() const {
  return format != nullptr ? format->operand == Operand::kFloats : dot_type() == GGML_TYPE_F32;
}

void PackedMatrix::pack(const std::byte* file_rows, int64_t first, int64_t end,
                        std::byte* packed) const {
  const size_t row_bytes = ggml_row_size(type, n_in);
  for (int64_t tile = first; tile < end; ++tile) {
    const int64_t row = tile * lanes;
    format->pack(file_rows + static_cast<size_t>(row) * row_bytes, row_bytes,
                 static_cast<int>(std::min<int64_t>(lanes, n_out - row)), n_in / format->block_size,
                 packed + static_cast<size_t>(tile) * tile_bytes());
  }
}

void PackedMatrix::multiply(int64_t first, int64_t end, const OperandRows& x, float* y,
                            int64_t y_stride) const {
  if (first >= end) return;
  if (format == nullptr) return multiply_by_dots(first, end, x, y, y_stride);
  const bool has_tail = end * lanes > n_out;
  const int64_t n_full = end - first - (has_tail ? 1 : 0);
  if (n_full > 0) {
    format->multiply({.tiles = data + static_cast<size_t>(first) * tile_bytes(),
                      .n_tiles = n_full,
                      .n_blocks = n_in / format->block_size,
                      .x = x.data,
                      .x_stride = x.stride,
                      .n_rows = x.n_rows,
                      .y = y,
                      .y_stride = y_stride});
  }
  if (has_tail) multiply_tail(x, y + n_full * lanes, y_stride);
}

void PackedMatrix::multiply_tail(const OperandRows& x, float* y, int64_t y_stride) const {
  CHECK(lanes <= kMaxLanes && kTailRows % x.rows_together == 0);
  const int64_t tile = n_tiles() - 1;
  float outputs[kTailRows * kMaxLanes];
  for (int row = 0; row < x.n_rows; row += kTailRows) {
    const int n_rows = std::min(kTailRows, x.n_rows - row);
    format->multiply({.tiles = data + static_cast<size_t>(tile) * tile_bytes(),
                      .n_tiles = 1,
                      .n_blocks = n_in / format->block_size,
                      .x = x.data + static_cast<size_t>(row / x.rows_together) * x.stride,
                      .x_stride = x.stride,
                      .n_rows = n_rows,
                      .y = outputs,
                      .y_stride = lanes});
    for (int r = 0; r < n_rows; ++r) {
      std::copy_n(outputs + r * lanes, n_out - tile * lanes, y + (row + r) * y_stride);
    }
  }
}

void PackedMatrix::multiply_by_dots(int64_t first, int64_t end, const OperandRows& x, float* y,
                                    int64_t y_stride) const {
  const auto dot = ggml_get_type_traits_cpu(type)->vec_dot;
  const size_t weight_bytes = ggml_row_size(type, n_in);
  for (int64_t out = first * lanes; out < std::min(end * lanes, n_out); ++out, ++y) {
    const std::byte* weights = data + static_cast<size_t>(out) * weight_bytes;
    for (int row = 0; row < x.n_rows; ++row) {
      dot(static_cast<int>(n_in), y + row * y_stride, 0, weights, 0,
          x.data + static_cast<size_t>(row) * x.stride, 0, 1);
    }
  }
}

}  // namespace forerun
