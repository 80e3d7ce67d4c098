// Keys and values of a chunk in shared memory: how cells of each type of cache are copied there, give
// scores, and become values as F16.
//
// A type is a struct with kDim (numbers of a head), kHeadBytes (of one in the cache), a stage (keys or
// values of a chunk, as they lie in the cache) of kStageUnits times 16 bytes, and, where values have to
// be unpacked, a tile beside the stages for kTileRows cells of them at a time. kHasWide: whether
// attention_wide_kernel.cuh serves it.
#pragma once

#include "model/cuda/attention.h"
#include "model/cuda/ptx.cuh"

namespace forerun::cuda {

constexpr int kWideHeadDim = 128;  // of larger heads, registers do not hold what a warp sums up
constexpr int kAttendThreads = 256;
constexpr int kAttendWarps = kAttendThreads / 32;
static_assert(kAttendWarps * 16 == kChunk);

// Rows of kDim halves in shared memory, in units of 16 bytes, so that eight rows' units of one column
// lie in different banks: an odd number of units apart, or, where that would take too much room,
// swizzled.
template <int kDim, bool kDense>
struct Tile {
  static constexpr int kUnits = kDim / 8;
  static constexpr bool kSwizzled = kDense && kUnits % 8 == 0;
  static constexpr int kStride = kSwizzled ? kUnits : kUnits + 1;
  static_assert(kUnits % 2 == 0);

  static __device__ __forceinline__ int at(int row, int unit) {
    return row * kStride + (kSwizzled ? unit ^ (row & 7) : unit);
  }
};
template <int kDim>
using QueryTile = Tile<kDim, false>;
using WeightTile = Tile<kChunk, false>;

// This thread's place among those that hold a tile of the tensor cores (ptx.cuh).
struct Lane {
  int warp, lane;
  int g, t;
  int mi, mr;  // the row that this lane addresses for load_matrices

  __device__ __forceinline__ Lane()
      : warp(static_cast<int>(threadIdx.x) / 32),
        lane(static_cast<int>(threadIdx.x) % 32),
        g(lane / 4),
        t(lane % 4),
        mi(lane / 8),
        mr(lane % 8) {}
};

// --- F16 ---

template <int kHeadDim>
struct HalfCells {
  static constexpr int kDim = kHeadDim;
  using Rows = Tile<kDim, true>;
  static constexpr int kHeadBytes = kDim * 2;
  static constexpr int kStageUnits = kChunk * Rows::kStride;
  static constexpr int kTileRows = kChunk;
  static constexpr int kTileUnits = 0;
  static constexpr bool kHasWide = kDim <= kWideHeadDim;

  // A warp copies the cells of 16 slots, so many lanes one of them. `cell` is that of slot
  // 16 * warp + lane % 16; -1: zeros.
  static constexpr int kCellLanes = Rows::kUnits <= 8 ? 8 : Rows::kUnits <= 16 ? 16 : 32;
  static __device__ __forceinline__ void copy(uint4* stage, const CacheRows& cache, int kv_head,
                                              int cell) {
    const Lane at;
    const int unit = at.lane % kCellLanes;
    const std::byte* head = cache.data + kv_head * kHeadBytes + unit * 16;
    const int row_bytes = static_cast<int>(cache.row_bytes);
#pragma unroll 4  // more would spill registers
    for (int first = 0; first < 16; first += 32 / kCellLanes) {
      const int row = first + at.lane / kCellLanes;
      const int from_cell = __shfl_sync(~0u, cell, row);
      if (unit >= Rows::kUnits) continue;
      const std::byte* from = head + static_cast<int64_t>(max(from_cell, 0)) * row_bytes;
      ptx::copy_16(stage + Rows::at(at.warp * 16 + row, unit), from, from_cell >= 0);
    }
  }

  // Products of queries with this warp's 16 keys.
  template <int kTiles>
  static __device__ __forceinline__ void multiply_keys(const uint4* stage, int, const uint4* queries,
                                                       float (&s)[kTiles][2][4]) {
    const Lane at;
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t b[4];
      ptx::load_matrices(b,
                         stage + Rows::at(at.warp * 16 + at.mi / 2 * 8 + at.mr, step * 2 + at.mi % 2));
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        uint32_t q[4];
        ptx::load_matrices(
            q, queries + QueryTile<kDim>::at(m * 16 + at.mi % 2 * 8 + at.mr, step * 2 + at.mi / 2));
        ptx::mma_f16(s[m][0], q, b[0], b[1]);
        ptx::mma_f16(s[m][1], q, b[2], b[3]);
      }
    }
  }

  // Products of 16 queries with all keys.
  static __device__ __forceinline__ void multiply_all_keys(const uint4* stage, const uint4* queries,
                                                           int first_query, float (&s)[kChunk / 8][4]) {
    const Lane at;
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t q[4];
      ptx::load_matrices(
          q, queries + QueryTile<kDim>::at(first_query + at.mi % 2 * 8 + at.mr, step * 2 + at.mi / 2));
#pragma unroll
      for (int j = 0; j < kChunk / 8; j += 2) {
        uint32_t b[4];
        ptx::load_matrices(b, stage + Rows::at(j * 8 + at.mi / 2 * 8 + at.mr, step * 2 + at.mi % 2));
        ptx::mma_f16(s[j], q, b[0], b[1]);
        ptx::mma_f16(s[j + 1], q, b[2], b[3]);
      }
    }
  }

  // Values [part * kTileRows, (part + 1) * kTileRows) of the stage as rows of halves.
  static __device__ __forceinline__ const uint4* values(const uint4* stage, int, uint4*, int) {
    return stage;
  }
};

// --- Q8_0 ---

// A head's blocks lie in a stage as in the cache, from the last address before them on that copies can
// begin at. Keys go from there to registers, values as halves to the tile.
template <int kHeadDim>
struct Q8Cells {
  static constexpr int kDim = kHeadDim;
  using Rows = Tile<kDim, true>;  // of the tile
  static constexpr int kBlocks = kDim / kQ8Numbers;
  static constexpr int kHeadBytes = kBlocks * kQ8Bytes;
  // So far apart rows' blocks are met by no more than two lanes to a bank.
  static constexpr int kRowUnits = kDim / 16 + 1;
  static constexpr int kStageUnits = kChunk * kRowUnits;
  static constexpr int kTileRows = kDim > 128 ? kChunk / 2 : kChunk;
  static constexpr int kTileUnits = kTileRows * Rows::kStride;
  static constexpr bool kHasWide = false;  // every warp would unpack all keys and values
  static_assert(kDim % kQ8Numbers == 0);

  static constexpr int kCopyBytes = kHeadBytes % 16 == 0 ? 16 : kHeadBytes % 8 == 0 ? 8 : 4;
  static constexpr int kCopies = (kHeadBytes + kCopyBytes - 1) / kCopyBytes;  // of a cell
  static_assert(kCopies * kCopyBytes <= kRowUnits * 16);

  // How far behind such an address the head begins. Rows of the cache are a multiple of four bytes
  // (attention_supports).
  static __device__ __forceinline__ int shift_of(int kv_head) {
    return kHeadBytes % 4 == 0 ? 0 : kv_head % 2 * 2;
  }

  // As HalfCells; the seventeenth copies of cells are the last, a lane to a cell.
  static constexpr int kCellLanes = kCopies <= 17 ? 16 : 32;
  static __device__ __forceinline__ void copy(uint4* stage, const CacheRows& cache, int kv_head,
                                              int cell) {
    const Lane at;
    const std::byte* head = cache.data + kv_head * kHeadBytes - shift_of(kv_head);
    const int row_bytes = static_cast<int>(cache.row_bytes);
    auto* rows = reinterpret_cast<std::byte*>(stage + at.warp * 16 * kRowUnits);
    const auto copy_one = [&](int row, int from_cell, int offset) {
      const std::byte* from = head + static_cast<int64_t>(max(from_cell, 0)) * row_bytes + offset;
      ptx::copy<kCopyBytes>(rows + row * (kRowUnits * 16) + offset, from, from_cell >= 0);
    };
    const int unit = at.lane % kCellLanes;
#pragma unroll 4  // more would spill registers
    for (int first = 0; first < 16; first += 32 / kCellLanes) {
      const int row = first + at.lane / kCellLanes;
      const int from_cell = __shfl_sync(~0u, cell, row);
      if (unit < kCopies) copy_one(row, from_cell, unit * kCopyBytes);
    }
    if (kCopies > kCellLanes && at.lane < 16) copy_one(at.lane, cell, kCellLanes * kCopyBytes);
  }

  // Numbers [8 * eighth, 8 * eighth + 8) of a block, as pairs of halves.
  static __device__ __forceinline__ void unpack(const uint4* stage, int row, int block, int eighth,
                                                int shift, uint32_t (&pairs)[4]) {
    const auto* blocks = reinterpret_cast<const std::byte*>(stage + row * kRowUnits);
    const int begin = shift + block * kQ8Bytes;
    const auto scale = __half2half2(*reinterpret_cast<const __half*>(blocks + begin));
    // Words behind the scale, of which each has two bytes of its neighbour where it is not aligned.
    const int first = begin + 2, bits = first % 4 * 8;
    const auto* words = reinterpret_cast<const uint32_t*>(blocks + first / 4 * 4 + eighth * 8);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t quants = __funnelshift_r(words[i], words[i + 1], bits) ^ 0x80808080u;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        // Bytes of q + 128 become halves 1024 + 128 + q.
        const uint32_t raised = ptx::choose_bytes(quants, 0x64646464u, j == 0 ? 0x4140u : 0x4342u);
        const __half2 whole = __hsub2(reinterpret_cast<const __half2&>(raised),
                                      __half2half2(__ushort_as_half(0x6480)));  // 1152
        const __half2 numbers = __hmul2(whole, scale);
        pairs[i * 2 + j] = reinterpret_cast<const uint32_t&>(numbers);
      }
    }
  }

  // A lane unpacks eight neighbours of two keys, which serve as four pairs of two steps of the tensor
  // cores: in another order than the memory's, in which it takes the queries too.
  template <int kTiles>
  static __device__ __forceinline__ void multiply_keys(const uint4* stage, int kv_head,
                                                       const uint4* queries, float (&s)[kTiles][2][4]) {
    const Lane at;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      uint32_t k[2][4];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        unpack(stage, at.warp * 16 + j * 8 + at.g, block, at.t, shift_of(kv_head), k[j]);
      }
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        const uint4 low = queries[QueryTile<kDim>::at(m * 16 + at.g, block * 4 + at.t)];
        const uint4 high = queries[QueryTile<kDim>::at(m * 16 + 8 + at.g, block * 4 + at.t)];
        const uint32_t first[4] = {low.x, high.x, low.y, high.y};
        const uint32_t second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          ptx::mma_f16(s[m][j], first, k[j][0], k[j][1]);
          ptx::mma_f16(s[m][j], second, k[j][2], k[j][3]);
        }
      }
    }
  }

  static __device__ __forceinline__ const uint4* values(const uint4* stage, int kv_head, uint4* tile,
                                                        int part) {
    const Lane at;
    constexpr int kWarpRows = kTileRows / kAttendWarps;
#pragma unroll
    for (int first = 0; first < kWarpRows; first += 8) {
      const int row = at.warp * kWarpRows + first + at.mr;
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        uint32_t pairs[4];
        unpack(stage, part * kTileRows + row, block, at.mi, shift_of(kv_head), pairs);
        tile[Rows::at(row, block * 4 + at.mi)] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
      }
    }
    return tile;
  }
};

}  // namespace forerun::cuda
