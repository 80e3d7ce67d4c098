// Rows as the kernels of rows.h read and write them: four numbers at a time.
#pragma once

#include "model/cuda/halves.cuh"
#include "model/cuda/parts.cuh"
#include "model/cuda/rows.h"

namespace forerun::cuda {

// Few rows take as long as one does, which is best spread over as many threads as there are. Many are
// bound by instructions, so that a thread has the same numbers of kRowsAtOnce rows. The bits are the
// same.
constexpr int kFewRows = 2 * kMaxRows;
constexpr int kRowsAtOnce = 4;

// Rows [first, first + kRows). In place of those beyond the last there is the last: it may be read, but
// not be written.
template <int kRows>
struct RowsAtOnce {
  int at[kRows];
  int n;  // to be written

  __device__ __forceinline__ RowsAtOnce(int first, int n_rows) : n(n_rows - first) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) at[r] = min(first + r, n_rows - 1);
  }
};

// Outputs [i, i + 4) of rows. More than one at once are for segments that have fours, and i below n.
template <int kRows>
__device__ __forceinline__ void segment_outputs(const Segment& segment, const int (&rows)[kRows], int i,
                                                float4 (&y)[kRows]) {
  if constexpr (kRows == 1) {
    y[0] = segment_outputs(segment, rows[0], i);
  } else {
    outputs_of_rows<1>(segment, rows, i, y);  // products leave few parts of many rows, mostly one
  }
}

// Numbers [i, i + 4) of n, i a multiple of 4; zeros beyond the last.
__device__ __forceinline__ float4 load_four(const float* x, int i, int n) {
  if (i + 4 <= n && is_aligned(x)) return __ldcg(reinterpret_cast<const float4*>(x + i));
  const auto one = [&](int k) { return k < n ? __ldcg(x + k) : 0.0f; };
  return make_float4(one(i), one(i + 1), one(i + 2), one(i + 3));
}
__device__ __forceinline__ void store_four(float* x, int i, int n, float4 v) {
  if (i + 4 <= n && is_aligned(x)) {
    *reinterpret_cast<float4*>(x + i) = v;
    return;
  }
  if (i < n) x[i] = v.x;
  if (i + 1 < n) x[i + 1] = v.y;
  if (i + 2 < n) x[i + 2] = v.z;
  if (i + 3 < n) x[i + 3] = v.w;
}
// Four neighbours of an operand lie side by side.
__device__ __forceinline__ void store_operand(const Operand& x, int row, int i, float4 v) {
  const __half2 four[2] = {saturated_halves(v.x, v.y), saturated_halves(v.z, v.w)};
  *reinterpret_cast<uint2*>(x.data + x.index(i, row)) = *reinterpret_cast<const uint2*>(four);
}

__device__ __forceinline__ float add_squares(float sum, float4 v) {
  return __fmaf_rn(v.w, v.w, __fmaf_rn(v.z, v.z, __fmaf_rn(v.y, v.y, __fmaf_rn(v.x, v.x, sum))));
}
// 1 / root of the mean of squares.
__device__ __forceinline__ float norm_factor(float sum_of_squares, int n, float eps) {
  const float mean = __fdiv_rn(sum_of_squares, static_cast<float>(n));
  return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
}

}  // namespace forerun::cuda
