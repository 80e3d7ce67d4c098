#include <algorithm>

#include "core/check.h"
#include "model/cuda/product.h"
#include "model/cuda/product_launch.cuh"

namespace forerun::cuda {
namespace {

int64_t filled_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

// How the kernel of many rows multiplies.
struct Wide {
  int n_rows_at_once = 0;  // by a block; 0: it does not
  int n_runs = 0;          // of a block
  bool of_groups = false;
};
// With too few rows for all SMs to have a block with a group of runs, blocks have runs of their own;
// that is faster than two products of half the rows where sums stay in warpgroups.
Wide wide_of(const Matrix& matrix, int n_rows) {
  constexpr int kMost = 2 * kMaxRows;
  const FormatKernels& kernels = *kernels_of_type(matrix.format->type);
  if (n_rows <= kMaxRows || !kernels.has_wide()) return {};
  const Cut cut = matrix.cut();
  if (n_rows <= kMost) {
    if (!kernels.adds_in_warpgroups) return {};
    return {.n_rows_at_once = kMost,
            .n_runs = std::min((cut.n_runs + Cut::kSms - 1) / Cut::kSms, Cut::kGroup)};
  }
  const int n_blocks = cut.n_groups() * ((n_rows + kMost - 1) / kMost);
  return {.n_rows_at_once = n_blocks >= Cut::kSms * 3 / 4 ? kMost : kMaxRows,
          .n_runs = Cut::kGroup,
          .of_groups = true};
}

void multiply_many(const Matrix& matrix, const Operand& x, int n_rows, const Wide& wide, float* parts,
                   cudaStream_t stream) {
  const Cut cut = matrix.cut();
  const WideWork work{.weights = matrix.data,
                      .x = x.data,
                      .operand_stride = kMaxRows * x.n_inputs,
                      .parts = parts,
                      .part_stride = int64_t{n_rows} * cut.n_outputs(),
                      .n_rows = n_rows,
                      .cut = cut,
                      .runs_of_block = wide.n_runs,
                      .adds_runs = wide.of_groups};
  kernels_of_type(matrix.format->type)->multiply_wide(work, wide.n_rows_at_once, stream);
}

}  // namespace

const FormatKernels* kernels_of_type(ggml_type type) {
  for (const auto& family : {float_kernels(), block_kernels(), k_kernels()}) {
    for (const FormatKernels& kernels : family) {
      if (kernels.format.type == type) return &kernels;
    }
  }
  return nullptr;
}

const Format* format_of(ggml_type type) {
  const FormatKernels* kernels = kernels_of_type(type);
  return kernels == nullptr ? nullptr : &kernels->format;
}

Matrix matrix_of(const Format& format, int64_t n_in, int64_t n_out) {
  return {.format = &format, .data = nullptr, .n_in = n_in, .n_out = filled_up(n_out, format.tile_rows)};
}

int64_t padded_inputs(const Format& format, int64_t n_in) {
  return filled_up(n_in, format.stage_depth);
}

size_t Matrix::n_bytes() const {
  const int64_t n_stages =
      n_out / format->tile_rows * (padded_inputs(*format, n_in) / format->stage_depth);
  return static_cast<size_t>(n_stages) * format->stage_bytes;
}

Cut Matrix::cut() const {
  const int n_tiles = static_cast<int>(n_out / format->tile_rows);
  const int n_stages = static_cast<int>(padded_inputs(*format, n_in) / format->stage_depth);
  Cut cut{.tile_rows = format->tile_rows, .n_tiles = n_tiles, .n_stages = n_stages, .n_runs = 0};
  cut.n_runs = std::max(n_tiles, std::min(Cut::kRuns, cut.most_runs()));
  return cut;
}

int Cut::most_parts(bool of_groups) const {
  int most = 0;
  for (int tile = 0; tile < n_tiles; ++tile) {
    const Runs of_tile = runs(tile * tile_rows);
    most = std::max(most, of_groups ? of_tile.n_groups() : of_tile.n());
  }
  return most;
}

int Matrix::most_parts(int n_rows) const {
  return cut().most_parts(wide_of(*this, n_rows).of_groups);
}

Parts parts_of(const Matrix& matrix, int n_rows, const float* data) {
  const Cut cut = matrix.cut();
  return {.data = data,
          .stride = int64_t{n_rows} * cut.n_outputs(),
          .n_outputs = cut.n_outputs(),
          .cut = cut,
          .of_groups = wide_of(matrix, n_rows).of_groups};
}

void pack(const Format& format, const std::byte* file_rows, int64_t n_in, int64_t n_rows,
          std::byte* packed, cudaStream_t stream) {
  const size_t n_bytes = matrix_of(format, n_in, n_rows).n_bytes();
  check(cudaMemsetAsync(packed, 0, n_bytes, stream), "pack weights");
  kernels_of_type(format.type)->pack(file_rows, n_in, n_rows, packed, stream);
}

void multiply(const Matrix& matrix, const Operand& x, int n_rows, float* parts, cudaStream_t stream) {
  CHECK(n_rows >= 1 && x.padded_rows == padded(n_rows));
  if (const Wide wide = wide_of(matrix, n_rows); wide.n_rows_at_once > 0) {
    return multiply_many(matrix, x, n_rows, wide, parts, stream);
  }
  const Cut cut = matrix.cut();
  for (int first = 0; first < n_rows; first += kMaxRows) {
    const ProductWork work{.weights = matrix.data,
                           .x = x.data + x.index(0, first),
                           .parts = parts + int64_t{first} * cut.n_outputs(),
                           .part_stride = int64_t{n_rows} * cut.n_outputs(),
                           .n_rows = std::min(n_rows - first, kMaxRows),
                           .padded_rows = x.padded_rows,
                           .n_ring = 0,  // the launch knows it
                           .cut = cut};
    kernels_of_type(matrix.format->type)->multiply(work, stream);
  }
}

}  // namespace forerun::cuda
