// Adding up what products leave: the parts of an output, its scale and its bias.
#pragma once

#include <cstdint>

#include "model/cuda/rows.h"

namespace forerun::cuda {

__device__ __forceinline__ float sum_of(float a, float b) {
  return __fadd_rn(a, b);
}
__device__ __forceinline__ float4 sum_of(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w));
}
__device__ __forceinline__ float4 product_of(float4 a, float4 b) {
  return make_float4(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y), __fmul_rn(a.z, b.z), __fmul_rn(a.w, b.w));
}
__device__ __forceinline__ float4 scaled(float4 a, float b) {
  return product_of(a, make_float4(b, b, b, b));
}

// Cut::runs, without 64-bit divisions where that is possible.
__device__ __forceinline__ Cut::Runs runs_of(const Cut& cut, int output) {
  const int64_t most = static_cast<int64_t>(cut.n_tiles) * cut.n_stages * cut.n_runs;
  if (most > UINT32_MAX) return cut.runs(output);
  const auto n_stages = static_cast<uint32_t>(cut.n_stages), n_runs = static_cast<uint32_t>(cut.n_runs);
  const uint32_t all = static_cast<uint32_t>(cut.n_tiles) * n_stages;
  const uint32_t first = static_cast<uint32_t>(output / cut.tile_rows) * n_stages;
  return {.first = static_cast<int>(((first + 1) * n_runs - 1) / all),
          .last = static_cast<int>(((first + n_stages) * n_runs - 1) / all)};
}

// How many parts an output has: the same in every row.
struct PartCount {
  int n;
  int n_in_first;  // group
};
__device__ __forceinline__ PartCount part_count(const Parts& parts, int output) {
  const Cut::Runs runs = runs_of(parts.cut, output);
  static_assert(Cut::kMostGroups <= Cut::kGroup);
  // Where parts are sums of groups, all of them pass for one group.
  if (parts.of_groups) return {.n = runs.n_groups(), .n_in_first = Cut::kGroup};
  return {.n = runs.n(), .n_in_first = Cut::kGroup - runs.first % Cut::kGroup};
}

// The sums of an output's parts, `stride` apart, in kRows rows: of a group in order, then the groups in
// order. The loads of kAtOnce parts of a group, in all rows, are under way at once.
template <int kAtOnce, int kRows, typename T>
__device__ __forceinline__ void add_parts(PartCount count, const T* const (&from)[kRows], int64_t stride,
                                          T (&sums)[kRows]) {
  static_assert(kAtOnce <= Cut::kGroup);
  int n_in_group = count.n_in_first;
  for (int i = 0; i < count.n; i += n_in_group, n_in_group = Cut::kGroup) {
    const int end = min(i + n_in_group, count.n);
    T of_group[kRows];
    int first = i;
    do {
      T part[kAtOnce][kRows];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (first + j >= end) continue;
#pragma unroll
        for (int r = 0; r < kRows; ++r) part[j][r] = __ldcg(from[r] + (first + j) * stride);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (first + j >= end) continue;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          of_group[r] = j == 0 && first == i ? part[j][r] : sum_of(of_group[r], part[j][r]);
        }
      }
      first += kAtOnce;
    } while (kAtOnce < Cut::kGroup && first < end);
#pragma unroll
    for (int r = 0; r < kRows; ++r) sums[r] = i == 0 ? of_group[r] : sum_of(sums[r], of_group[r]);
  }
}

// Output i of a segment.
__device__ __forceinline__ float segment_output(const Segment& segment, int row, int i) {
  const Parts& parts = segment.parts;
  const int output = segment.first + i;
  const float* const from[] = {parts.data + static_cast<int64_t>(row) * parts.n_outputs + output};
  float y[1];
  add_parts<Cut::kGroup>(part_count(parts, output), from, parts.stride, y);
  if (segment.scale != nullptr) y[0] = __fmul_rn(y[0], *segment.scale);
  if (segment.bias != nullptr) y[0] = __fadd_rn(y[0], segment.bias[i]);
  return y[0];
}

// Whether four neighbours can be read at once.
__host__ __device__ __forceinline__ bool is_aligned(const float* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}
__host__ __device__ __forceinline__ bool has_fours(const Segment& segment) {
  const Parts& parts = segment.parts;
  return (segment.first | segment.n | parts.n_outputs | parts.cut.tile_rows |
          static_cast<int>(parts.stride & 3)) %
                 4 ==
             0 &&
         is_aligned(parts.data) && is_aligned(segment.bias);
}

// Outputs [i, i + 4) of kRows rows of a segment that has_fours, i a multiple of 4 below its n. What
// depends on i alone is computed once. kAtOnce: see add_parts().
template <int kAtOnce, int kRows>
__device__ __forceinline__ void outputs_of_rows(const Segment& segment, const int (&rows)[kRows], int i,
                                                float4 (&y)[kRows]) {
  const Parts& parts = segment.parts;
  const int output = segment.first + i;
  const float4* from[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    from[r] = reinterpret_cast<const float4*>(parts.data +
                                              static_cast<int64_t>(rows[r]) * parts.n_outputs + output);
  }
  add_parts<kAtOnce>(part_count(parts, output), from, parts.stride / 4, y);
  if (segment.scale != nullptr) {
    const float scale = *segment.scale;
#pragma unroll
    for (int r = 0; r < kRows; ++r) y[r] = scaled(y[r], scale);
  }
  if (segment.bias != nullptr) {
    const float4 bias = *reinterpret_cast<const float4*>(segment.bias + i);
#pragma unroll
    for (int r = 0; r < kRows; ++r) y[r] = sum_of(y[r], bias);
  }
}

// Outputs [i, i + 4) of a segment, i a multiple of 4; zeros beyond its last.
__device__ __forceinline__ float4 segment_outputs(const Segment& segment, int row, int i) {
  if (has_fours(segment) && i < segment.n) {
    float4 y[1];
    outputs_of_rows<Cut::kGroup>(segment, {row}, i, y);
    return y[0];
  }
  const auto one = [&](int k) { return k < segment.n ? segment_output(segment, row, k) : 0.0f; };
  return make_float4(one(i), one(i + 1), one(i + 2), one(i + 3));
}

}  // namespace forerun::cuda
