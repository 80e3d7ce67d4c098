// What the weight types of products have in common.
//
// A matrix lies in memory as stages: the weights of a tile of outputs for a run of inputs. A weight type
// says how a stage lies in memory, how a warp multiplies its share of it, and how rows of a file become
// stages:
//   kTiles, kDepth and what follows from them (StageShape), kWideTiles; kStageBytes
//   kWarpgroups, kHasMins         see Warpgroups, ScaledSums
//   kFileBlock, kFileBytes        weights of a block in the file, and its bytes
//   unpack(stage, block, first_tile, m, lane, a)  weights of tile first_tile + m (first_tile is even)
//   scales(stage, block, tile, g)                 what belongs to them: Scales
//   columns(x)                    a lane's operand, 8 rows of x, as add() wants it: x is its pairs
//   add(a, scales, columns, sums) adds the product of a block to the sums of a tile
//   kNeedsManyRegisters           for what is neither operands nor sums
//   pack(file_block, part, place) the 32 weights that are number `part` of a file's block, for one lane
//
// Weights lie in the order of the tensor cores' registers, in blocks of 32 inputs: with g = lane / 4 and
// t = lane % 4, pair p of a lane (p = 0..3) is the inputs 8p + 2t and 8p + 2t + 1 of outputs g and g
// + 8. All a lane needs of a block is one load then. A stage of zeros is weights of zero.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "model/cuda/halves.cuh"
#include "model/cuda/product.h"
#include "model/cuda/ptx.cuh"

namespace forerun::cuda {

constexpr int kWarps = 8;
constexpr int kThreads = 32 * kWarps;

// How warpgroups multiply a type with many rows: not at all, with products added to the sums as they
// are, or with products of blocks.
enum class Warpgroups { kNone, kSums, kBlocks };

// With few rows each of the warps takes kTiles tiles of 16 outputs, over all inputs of the stage.
template <int kTilesOfWarp, int kInputs>
struct StageShape {
  static constexpr int kTiles = kTilesOfWarp, kDepth = kInputs;
  static constexpr int kWideTiles = 2;  // of a warp, with many rows, if it is by itself
  static constexpr int kAllTiles = kTiles * kWarps, kOutputs = 16 * kAllTiles, kBlocks = kDepth / 32;
};

// What one lane packs: its inputs of a block, for output g (row 0) or g + 8 (row 1) of a tile.
struct Place {
  std::byte* stage;
  int block;
  int tile;
  int lane;
  int row;
};
__device__ __forceinline__ int input_of(int lane, int pair, int i) {
  return pair * 8 + lane % 4 * 2 + i;
}
// Of something that exists per block and output: [block][tile][g] for outputs g and g + 8.
template <typename W>
__device__ __forceinline__ int scale_index(const Place& place) {
  return ((place.block * W::kAllTiles + place.tile) * 8 + place.lane / 4) * 2 + place.row;
}
__device__ __forceinline__ uint32_t read_16(const uint8_t* from) {
  return from[0] | from[1] << 8;
}

template <typename T>
__device__ __forceinline__ const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <typename T>
__device__ __forceinline__ T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}
__device__ __forceinline__ __half2 halves(uint32_t v) {
  return *reinterpret_cast<__half2*>(&v);
}
__device__ __forceinline__ float2 floats(uint32_t v) {
  return __half22float2(halves(v));
}

// A block's weights as two operands of the tensor cores, 16 inputs each.
using BlockOperand = uint32_t[2][4];

// --- integers, exactly, as halves: 0x6400 | q is the half 1024 + q, and with q four bits higher 1024 +
// 16 q ---

// Halves from 1024 + q, and from 1024 + 16 q, to q - kBias.
template <int kBias>
__device__ __forceinline__ uint32_t from_low(uint32_t v) {
  return bits(__hsub2(halves(v), __float2half2_rn(1024.f + kBias)));
}
template <int kBias>
__device__ __forceinline__ uint32_t from_high(uint32_t v) {
  return bits(__hfma2(halves(v), __float2half2_rn(1.f / 16), __float2half2_rn(-64.f - kBias)));
}

// The eight nibbles of output `row`: pair p is the nibbles p and p + 4.
template <int kBias>
__device__ __forceinline__ void unpack_nibbles(uint32_t word, int row, BlockOperand& a) {
#pragma unroll
  for (int j = 0; j < 2; ++j, word >>= 8) {
    a[j][row] = from_low<kBias>(ptx::and_or(word, 0x000f000fu, 0x64006400u));
    a[j][2 + row] = from_high<kBias>(ptx::and_or(word, 0x00f000f0u, 0x64006400u));
  }
}

// The same with kBits more bits above the nibbles: those of pair 0 lie in `high` from bit `at` on, of
// pair 1 four bits higher, those of pairs 2 and 3 `step` bits above these. (A pair's second has its own
// 16 bits further up.)
template <int kBias, int kBits>
__device__ __forceinline__ void unpack_more(uint32_t word, uint32_t high, int at, int step, int row,
                                            BlockOperand& a) {
  constexpr uint32_t kOnes = (1u << kBits) - 1, kMask = kOnes << 16 | kOnes;
#pragma unroll
  for (int j = 0; j < 2; ++j, word >>= 8) {
    const int down = at + j * step - 4;
    const uint32_t more = down >= 0 ? high >> down : high << -down;  // now at bits 4 and 8
    a[j][row] =
        from_low<kBias>(ptx::and_or(more, kMask << 4, ptx::and_or(word, 0x000f000fu, 0x64006400u)));
    a[j][2 + row] =
        from_high<kBias>(ptx::and_or(more, kMask << 8, ptx::and_or(word, 0x00f000f0u, 0x64006400u)));
  }
}

// Four signed bytes to two pairs: 0x6400 | (b + 128) is the half 1152 + b.
__device__ __forceinline__ void unpack_bytes(uint32_t word, uint32_t& first, uint32_t& second) {
  word ^= 0x80808080u;
  first = from_low<128>(ptx::choose_bytes(word, 0x64646464u, 0x4140));
  second = from_low<128>(ptx::choose_bytes(word, 0x64646464u, 0x4342));
}

// Nibbles as unpack_nibbles() wants them: [block][tile][lane] {word of output g, of output g + 8}.
template <typename W>
__device__ __forceinline__ uint2 nibble_words(const std::byte* stage, int block, int tile, int lane) {
  return as<uint2>(stage)[(block * W::kAllTiles + tile) * 32 + lane];
}
template <typename W, typename Quant>
__device__ void pack_nibbles(const Place& to, Quant quant) {
  uint32_t word = 0;
  for (int i = 0; i < 8; ++i) {
    word |= (quant(input_of(to.lane, i / 2, i % 2)) & 15u) << (4 * (i / 2) + 16 * (i % 2));
  }
  as<uint32_t>(to.stage)[((to.block * W::kAllTiles + to.tile) * 32 + to.lane) * 2 + to.row] = word;
}

// Fifth bits as unpack_more() wants them, after the nibbles: [block][two tiles][lane] a word. Bit 8
// (tile % 2) + row is that of pair 0; step is 2.
template <typename W>
__device__ __forceinline__ uint32_t fifth_bits(const std::byte* stage, int block, int two_tiles,
                                               int lane) {
  return as<uint32_t>(stage +
                      W::kOutputs * W::kDepth / 2)[(block * (W::kAllTiles / 2) + two_tiles) * 32 + lane];
}
template <typename W, typename Quant>
__device__ void pack_fifth_bits(const Place& to, Quant quant) {
  uint8_t* bytes = as<uint8_t>(to.stage + W::kOutputs * W::kDepth / 2) +
                   ((to.block * (W::kAllTiles / 2) + to.tile / 2) * 32 + to.lane) * 4 + to.tile % 2;
  for (int i = 0; i < 8; ++i) {
    const int pair = i / 2, at = pair / 2 * 2 + pair % 2 * 4 + to.row;
    bytes[i % 2 * 2] |= (quant(input_of(to.lane, pair, i % 2)) >> 4 & 1u) << at;
  }
}

// --- multiplying ---

// Scales of a block, for outputs g and g + 8: of its first and its second 16 inputs (the same, unless
// there are two), and what is added to every weight, if anything is.
struct BlockScales {
  float scale[2][2];  // [16 inputs][output]
  float min[2];
};

// How integers that have scales are multiplied: they go through the tensor cores exactly, and the sum of
// each block is scaled in F32. What is added to all weights of a block needs the sum of x over the
// block, which is a product with ones: it is then in the lanes that need it.
template <int kScales, bool kHasMin>
struct ScaledSums {
  static constexpr bool kNeedsManyRegisters = true;
  static constexpr bool kHasMins = kHasMin;
  static constexpr bool kSixteens = kScales == 2;  // have a scale each
  static constexpr Warpgroups kWarpgroups = Warpgroups::kBlocks;
  using Scales = BlockScales;
  struct Columns {
    uint4 x;
    float sums[4];
  };
  static __device__ __forceinline__ Columns columns(const uint4& x) {
    constexpr uint32_t kOnes[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u};
    Columns columns{.x = x, .sums = {}};
    if constexpr (kHasMin) {
      ptx::mma_f16(columns.sums, kOnes, x.x, x.y);
      ptx::mma_f16(columns.sums, kOnes, x.z, x.w);
    }
    return columns;
  }
  static __device__ __forceinline__ void add(const BlockOperand& a, const BlockScales& scales,
                                             const Columns& columns, float (&sums)[4]) {
    if constexpr (kHasMin) add_scaled(columns.sums, scales.min, sums);
    float c[4] = {};
    ptx::mma_f16(c, a[0], columns.x.x, columns.x.y);
    if constexpr (kScales == 2) {
      add_scaled(c, scales.scale[0], sums);
      c[0] = c[1] = c[2] = c[3] = 0.f;
    }
    ptx::mma_f16(c, a[1], columns.x.z, columns.x.w);
    add_scaled(c, scales.scale[1], sums);
  }
  static __device__ __forceinline__ void add_scaled(const float (&c)[4], const float (&scale)[2],
                                                    float (&sums)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = __fmaf_rn(scale[i / 2], c[i], sums[i]);
  }
};

// The pairs 0..3 of a lane of a block of 8 rows of x: inputs 8p + 2t and the next of row g.
__device__ __forceinline__ uint4 load_pairs(const std::byte* x, int nt, int lane) {
  const int row = lane % 8, eight = operand_eight(lane / 8, row);  // that it addresses
  uint32_t pairs[4];
  ptx::load_matrices(pairs, x + (nt * 8 + row) * (kOperandBlock * 2) + eight * 16);
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// The product of a block of 32 inputs, added to the sums of kTiles tiles from first_tile (even) on, for
// NT times 8 rows of x, which begin at `x`. kKeepsApart: a fence keeps the compiler from beginning
// several columns at once, for which it may run out of registers. In all kernels, and with any kTiles
// and NT, a sum is made of the same operations in the same order.
template <typename W, bool kKeepsApart, int kTiles, int NT>
__device__ __forceinline__ void multiply_block(const std::byte* stage, int block, const std::byte* x,
                                               float (&sums)[kTiles][NT][4], int first_tile, int lane) {
  static_assert(kTiles % 2 == 0);
  BlockOperand a[kTiles];
  typename W::Scales scales[kTiles];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    W::unpack(stage, block, first_tile, m, lane, a[m]);
    scales[m] = W::scales(stage, block, first_tile + m, lane / 4);
  }
#pragma unroll
  for (int nt = 0; nt < NT; ++nt) {
    if (kKeepsApart) __syncwarp();
    const auto columns = W::columns(load_pairs(x, nt, lane));
#pragma unroll
    for (int m = 0; m < kTiles; ++m) W::add(a[m], scales[m], columns, sums[m][nt]);
  }
}

}  // namespace forerun::cuda
