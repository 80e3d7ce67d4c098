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
  static constexpr bool kNeedsManyRegisters = false, kHasMins = false;
  static constexpr int kWideTiles = 4;  // few registers go to unpacking: enough are left for more sums
  struct Scales {};

  static __device__ __forceinline__ Scales scales(const std::byte* /*stage*/, int /*block*/,
                                                  int /*tile*/, int /*g*/) {
    return {};
  }
  // An operand of the tensor cores: 16 inputs.
  static __device__ __forceinline__ void load(const std::byte* stage, int block, int tile, int half,
                                              int lane, uint32_t (&a)[4]) {
    const uint4 v = as<uint4>(stage)[((block * kAllTiles + tile) * 2 + half) * 32 + lane];
    a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
  }
  static __device__ __forceinline__ void unpack(const std::byte* stage, int block, int first_tile, int m,
                                                int lane, BlockOperand& a) {
#pragma unroll
    for (int half = 0; half < 2; ++half) load(stage, block, first_tile + m, half, lane, a[half]);
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
  static constexpr Warpgroups kWarpgroups = Warpgroups::kSums;
  using Columns = uint4;
  static __device__ __forceinline__ Columns columns(const uint4& x) { return x; }
  static __device__ __forceinline__ void add(const BlockOperand& a, Scales, const Columns& x,
                                             float (&sums)[4]) {
    ptx::mma_f16(sums, a[0], x.x, x.y);
    ptx::mma_f16(sums, a[1], x.z, x.w);
  }
};

// x is F16 and weights are not in its range, so both go through the tensor cores as BF16: x as the sum
// of two, which is exact, since 11 bits are the first 8 and the other 3.
struct BF16 : SixteenBits {
  static constexpr Warpgroups kWarpgroups = Warpgroups::kNone;
  struct Columns {
    uint4 high, low;
  };
  static __device__ __forceinline__ void split(uint32_t pair, uint32_t& high, uint32_t& low) {
    const float2 v = floats(pair);
    const uint32_t first = __float_as_uint(v.x), second = __float_as_uint(v.y);
    high = ptx::choose_bytes(first, second, 0x7632);  // the upper halves: BF16, rounded towards zero
    const float rest_first = v.x - __uint_as_float(first & 0xffff0000u);
    const float rest_second = v.y - __uint_as_float(second & 0xffff0000u);
    low = ptx::choose_bytes(__float_as_uint(rest_first), __float_as_uint(rest_second), 0x7632);
  }
  static __device__ __forceinline__ Columns columns(const uint4& x) {
    Columns columns;
    split(x.x, columns.high.x, columns.low.x);
    split(x.y, columns.high.y, columns.low.y);
    split(x.z, columns.high.z, columns.low.z);
    split(x.w, columns.high.w, columns.low.w);
    return columns;
  }
  static __device__ __forceinline__ void add(const BlockOperand& a, Scales, const Columns& x,
                                             float (&sums)[4]) {
    ptx::mma_bf16(sums, a[0], x.low.x, x.low.y);
    ptx::mma_bf16(sums, a[0], x.high.x, x.high.y);
    ptx::mma_bf16(sums, a[1], x.low.z, x.low.w);
    ptx::mma_bf16(sums, a[1], x.high.z, x.high.w);
  }
};

}  // namespace forerun::cuda
