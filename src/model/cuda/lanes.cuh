// What all lanes of a warp, or of a part of it, make of one number each: the same in all of them.
#pragma once

#include <cuda_runtime.h>

namespace forerun::cuda {

// Of groups of kLanes neighbours, those that are furthest apart first.
template <int kLanes = 32, typename T, typename Op>
__device__ __forceinline__ T over_lanes(T x, Op op) {
#pragma unroll
  for (int i = kLanes / 2; i > 0; i /= 2) x = op(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
// Additions that the compiler joins with no product before them.
template <int kLanes = 32>
__device__ __forceinline__ float sum_over_lanes(float x) {
  return over_lanes<kLanes>(x, [](float a, float b) { return __fadd_rn(a, b); });
}
template <int kLanes = 32>
__device__ __forceinline__ double sum_over_lanes(double x) {
  return over_lanes<kLanes>(x, [](double a, double b) { return __dadd_rn(a, b); });
}
template <int kLanes = 32, typename T>
__device__ __forceinline__ T max_over_lanes(T x) {
  return over_lanes<kLanes>(x, [](T a, T b) { return max(a, b); });
}

}  // namespace forerun::cuda
