// F16 and BF16.
//
// Stage: [block][tile][16 inputs][lane] {pair of output g, of output g + 8, next pair of g, of g + 8}:
// an operand is one load.
#pragma once

#include "model/cuda/weights.cuh"

namespace forerun::cuda {

// Numbers of 16 bits; what they mean is left to the multiplication.
struct SixteenBits : StageShape<2, 32> {
  static constexpr int kStageBytes = kOutputs * kDepth * 2;
  static constexpr int kFileBlock = 1, kFileBytes = 2;  // any number of inputs

  static __device__ __forceinline__ void load(const std::byte* stage, int block, int tile, int lane,
                                              BlockOperand& a) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 v = as<uint4>(stage)[((block * kAllTiles + tile) * 2 + half) * 32 + lane];
      a[half][0] = v.x, a[half][1] = v.y, a[half][2] = v.z, a[half][3] = v.w;
    }
  }
  // `n` of the block's inputs exist.
  static __device__ void pack(const uint16_t* from, int n, const Place& to) {
    for (int i = 0; i < 8; ++i) {
      const int pair = i / 2, k = input_of(to.lane, pair, i % 2);
      const int word =
          (((to.block * kAllTiles + to.tile) * 2 + pair / 2) * 32 + to.lane) * 4 + pair % 2 * 2 + to.row;
      as<uint16_t>(to.stage)[word * 2 + i % 2] = k < n ? from[k] : 0;
    }
  }
};

struct F16 : SixteenBits {
  template <int NT>
  static __device__ __forceinline__ void multiply(const std::byte* stage, const uint4* x,
                                                  float (&sums)[kTiles][NT][4], int warp, int lane) {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      BlockOperand a[kTiles];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) load(stage, block, warp * kTiles + m, lane, a[m]);
#pragma unroll
      for (int nt = 0; nt < NT; ++nt) {
        const uint4 b = x[(block * NT + nt) * 32 + lane];
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          ptx::mma_f16(sums[m][nt], a[m][0], b.x, b.y);
          ptx::mma_f16(sums[m][nt], a[m][1], b.z, b.w);
        }
      }
    }
  }
};

// x is F16 and weights are not in its range, so both go through the tensor cores as BF16: x as the sum
// of two, which is exact, since 11 bits are the first 8 and the other 3.
struct BF16 : SixteenBits {
  static __device__ __forceinline__ void split(uint32_t pair, uint32_t& high, uint32_t& low) {
    const float2 v = floats(pair);
    const uint32_t first = __float_as_uint(v.x), second = __float_as_uint(v.y);
    high = ptx::choose_bytes(first, second, 0x7632);  // the upper halves: BF16, rounded towards zero
    const float rest_first = v.x - __uint_as_float(first & 0xffff0000u);
    const float rest_second = v.y - __uint_as_float(second & 0xffff0000u);
    low = ptx::choose_bytes(__float_as_uint(rest_first), __float_as_uint(rest_second), 0x7632);
  }
  template <int NT>
  static __device__ __forceinline__ void multiply(const std::byte* stage, const uint4* x,
                                                  float (&sums)[kTiles][NT][4], int warp, int lane) {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      BlockOperand a[kTiles];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) load(stage, block, warp * kTiles + m, lane, a[m]);
#pragma unroll
      for (int nt = 0; nt < NT; ++nt) {
        const uint4 b = x[(block * NT + nt) * 32 + lane];
        uint4 high, low;
        split(b.x, high.x, low.x);
        split(b.y, high.y, low.y);
        split(b.z, high.z, low.z);
        split(b.w, high.w, low.w);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          ptx::mma_bf16(sums[m][nt], a[m][0], low.x, low.y);
          ptx::mma_bf16(sums[m][nt], a[m][0], high.x, high.y);
          ptx::mma_bf16(sums[m][nt], a[m][1], low.z, low.w);
          ptx::mma_bf16(sums[m][nt], a[m][1], high.z, high.w);
        }
      }
    }
  }
};

}  // namespace forerun::cuda
