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

// The sum of an output's parts, `stride` apart: of a group in order, its loads all under way at once,
// then the groups in order. Where parts are sums of groups, all of them pass for one group.
template <typename T>
__device__ __forceinline__ T sum_of_parts(const Parts& parts, int output, const T* from,
                                          int64_t stride) {
  static_assert(Cut::kMostGroups <= Cut::kGroup);
  const Cut::Runs runs = runs_of(parts.cut, output);
  const int count = parts.of_groups ? runs.n_groups() : runs.n();
  int n_in_group = parts.of_groups ? Cut::kGroup : Cut::kGroup - runs.first % Cut::kGroup;
  T sum;
  for (int i = 0; i < count; i += n_in_group, n_in_group = Cut::kGroup) {
    const int end = min(i + n_in_group, count);
    T part[Cut::kGroup];
#pragma unroll
    for (int j = 0; j < Cut::kGroup; ++j) {
      if (i + j < end) part[j] = __ldcg(from + (i + j) * stride);
    }
    T of_group = part[0];
#pragma unroll
    for (int j = 1; j < Cut::kGroup; ++j) {
      if (i + j < end) of_group = sum_of(of_group, part[j]);
    }
    sum = i == 0 ? of_group : sum_of(sum, of_group);
  }
  return sum;
}

// Output i of a segment.
__device__ __forceinline__ float segment_output(const Segment& segment, int row, int i) {
  const Parts& parts = segment.parts;
  const int output = segment.first + i;
  float y = sum_of_parts(
      parts, output, parts.data + static_cast<int64_t>(row) * parts.n_outputs + output, parts.stride);
  if (segment.scale != nullptr) y = __fmul_rn(y, *segment.scale);
  if (segment.bias != nullptr) y = __fadd_rn(y, segment.bias[i]);
  return y;
}

// Whether four neighbours can be read at once.
__device__ __forceinline__ bool is_aligned(const float* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}
__device__ __forceinline__ bool has_fours(const Segment& segment) {
  const Parts& parts = segment.parts;
  return (segment.first | segment.n | parts.n_outputs | parts.cut.tile_rows |
          static_cast<int>(parts.stride & 3)) %
                 4 ==
             0 &&
         is_aligned(parts.data) && is_aligned(segment.bias);
}

// Outputs [i, i + 4) of a segment, i a multiple of 4; zeros beyond its last.
__device__ __forceinline__ float4 segment_outputs(const Segment& segment, int row, int i) {
  if (has_fours(segment) && i < segment.n) {
    const Parts& parts = segment.parts;
    const int output = segment.first + i;
    const float* from = parts.data + static_cast<int64_t>(row) * parts.n_outputs + output;
    float4 y = sum_of_parts(parts, output, reinterpret_cast<const float4*>(from), parts.stride / 4);
    if (segment.scale != nullptr) {
      const float scale = *segment.scale;
      y = make_float4(__fmul_rn(y.x, scale), __fmul_rn(y.y, scale), __fmul_rn(y.z, scale),
                      __fmul_rn(y.w, scale));
    }
    if (segment.bias != nullptr) y = sum_of(y, *reinterpret_cast<const float4*>(segment.bias + i));
    return y;
  }
  const auto one = [&](int k) { return k < segment.n ? segment_output(segment, row, k) : 0.0f; };
  return make_float4(one(i), one(i + 1), one(i + 2), one(i + 3));
}

}  // namespace forerun::cuda
