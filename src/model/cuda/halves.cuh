// F32 to F16, saturated: what is beyond the largest half becomes that, not infinity, of which the next
// product would make NaN.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace forerun::cuda {

__device__ __forceinline__ uint32_t bits(__half2 v) {
  return *reinterpret_cast<uint32_t*>(&v);
}

constexpr float kLargestHalf = 65504.0f;

__device__ __forceinline__ float saturated(float x, float most) {
  return fminf(fmaxf(x, -most), most);
}
__device__ __forceinline__ __half saturated_half(float x) {
  return __float2half_rn(saturated(x, kLargestHalf));
}
__device__ __forceinline__ __half2 saturated_halves(float low, float high) {
  return __floats2half2_rn(saturated(low, kLargestHalf), saturated(high, kLargestHalf));
}

}  // namespace forerun::cuda
