// The kernel of products with many rows, for Hopper: a block of threads multiplies a tile of outputs
// with 64 or 128 rows, so that weights are read once for these.
//
// Its sums have the bits of product_kernel.cuh's: it walks the eight runs of a group in order, and where
// a run ends it adds what that has to a total in shared memory and begins again with zeros. Where a tile
// or the group ends, the total is one part of the tile. Groups are equally long, whatever the tiles: 33
// of them, times four of 128 rows, are one block for each SM of an H200.
#pragma once

#include <algorithm>

#include "model/cuda/product.h"
#include "model/cuda/product_kernel.cuh"
#include "model/cuda/weights.cuh"

namespace forerun::cuda {

constexpr int kWideSharedBytes = 227 * 1024;  // of a block, all that Hopper has
constexpr int kWideStateBytes = 384;          // barriers and GroupStages
constexpr int kMaxSlots = 8;

struct WideWork {
  const std::byte* weights;  // stage after stage, tile after tile
  const __half* x;           // operands of kMaxRows rows
  int64_t operand_stride;    // halves from operand to operand
  float* parts;         // [part][row][output], a part for every group that touches the output's tile
  int64_t part_stride;  // floats from part to part
  int n_rows;
  Cut cut;
};

// kOperands: of 64 rows each, which a block multiplies at once. Half of the warps take the first half of
// these rows, the others the second.
template <typename W, int kOperands>
struct WideShape {
  static constexpr int kTiles = W::kWideTiles;
  static constexpr int kNT = 4 * kOperands;  // of a warp
  static constexpr bool kKeepsApart = W::kNeedsManyRegisters || (kNT == 8 && kTiles == 2);
  static constexpr int kTileWarps = W::kAllTiles / kTiles;
  static constexpr int kWarps = 2 * kTileWarps, kThreads = 32 * kWarps;
  static constexpr int kRows = kMaxRows * kOperands;
  static __device__ __forceinline__ int first_tile() {
    return only_here(threadIdx.x) / 32 % kTileWarps * kTiles;
  }
  static __device__ __forceinline__ int first_column() {  // in units of 8 rows
    return only_here(threadIdx.x) / 32 / kTileWarps * kNT;
  }

  // Shared memory: totals, the ring of stages of weights, the ring of blocks of x (32 inputs each).
  static constexpr int kTotalStride = W::kOutputs + 4;  // floats of a row: no two lanes share a bank
  static constexpr int kTotalBytes = kRows * kTotalStride * 4;
  static constexpr int kOperandBytes = kMaxRows * kOperandBlock * 2, kXBytes = kOperands * kOperandBytes;
  static constexpr int kRoom = kWideSharedBytes - kWideStateBytes - kTotalBytes;
  static constexpr int kBoth = kRoom / (W::kStageBytes + W::kBlocks * kXBytes);  // stages of both
  static constexpr int kWeightSlots = std::min(kMaxSlots, std::max(2 + 2 / W::kBlocks, kBoth));
  static constexpr int kXSlots = std::min(kMaxSlots, (kRoom - kWeightSlots * W::kStageBytes) / kXBytes);
  static constexpr int kSharedBytes = kTotalBytes + kWeightSlots * W::kStageBytes + kXSlots * kXBytes;
  static_assert(kXSlots >= 4 && kTotalBytes % 128 == 0);
};

// Where number i of what goes through a ring is, and the parity of the barriers' phase then.
template <unsigned kSlots>
struct Slot {
  unsigned index, parity;
  __device__ __forceinline__ explicit Slot(unsigned i) : index(i % kSlots), parity(i / kSlots % 2) {}
};

// The stages of a block's group of runs. In shared memory, since registers are scarce where it is
// wanted.
struct GroupStages {
  int first;
  int run_ends[Cut::kGroup];
  int first_part;  // of the tile in which the group begins: groups before it have its other parts

  __device__ __forceinline__ void find(const Cut& cut) {
    const int i = threadIdx.x, run = blockIdx.y * Cut::kGroup;
    if (i < Cut::kGroup) run_ends[i] = cut.first(min(run + i + 1, cut.n_runs));
    if (i > 0) return;
    first = cut.first(run);
    first_part = blockIdx.y - cut.run_of(first / cut.n_stages * cut.n_stages) / Cut::kGroup;
  }
  __device__ __forceinline__ int end() const { return run_ends[Cut::kGroup - 1]; }
  __device__ __forceinline__ int n() const { return end() - first; }
  // The end of the run or of the tile that a stage is in, whichever comes first.
  __device__ __forceinline__ int next_border(const Cut& cut, int stage) const {
    int border = (stage / cut.n_stages + 1) * cut.n_stages;
#pragma unroll
    for (int i = 0; i < Cut::kGroup; ++i) {
      if (run_ends[i] > stage) border = min(border, run_ends[i]);
    }
    return border;
  }
};

// The rings. x goes block by block, as a stage of x would leave no room for a second one.
template <typename W, int kOperands>
struct WideRings {
  using Shape = WideShape<W, kOperands>;
  using WeightSlot = Slot<Shape::kWeightSlots>;
  using XSlot = Slot<Shape::kXSlots>;
  struct Barriers {
    uint64_t weights_full[kMaxSlots], x_full[kMaxSlots];
    uint64_t weights_done[kMaxSlots], x_done[kMaxSlots];  // with all warps
  };
  const WideWork& work;
  std::byte *weights, *x;
  Barriers& barriers;
  const GroupStages& group;

  __device__ __forceinline__ int n_blocks() const { return group.n() * W::kBlocks; }
  __device__ __forceinline__ std::byte* weights_at(int slot) const {
    return weights + slot * W::kStageBytes;
  }
  __device__ __forceinline__ std::byte* x_at(int slot) const { return x + slot * Shape::kXBytes; }

  __device__ __forceinline__ void make_barriers() const {
    for (int slot = 0; slot < kMaxSlots; ++slot) {
      ptx::barrier_init(&barriers.weights_full[slot], 1);
      ptx::barrier_init(&barriers.x_full[slot], 1);
      ptx::barrier_init(&barriers.weights_done[slot], Shape::kWarps);
      ptx::barrier_init(&barriers.x_done[slot], Shape::kWarps);
    }
    ptx::barriers_ready();
  }
  __device__ __forceinline__ void begin_weights(int stage, int slot) const {
    uint64_t* full = &barriers.weights_full[slot];
    ptx::barrier_expect(full, W::kStageBytes);
    ptx::copy_bulk(weights_at(slot), work.weights + int64_t{group.first + stage} * W::kStageBytes,
                   W::kStageBytes, full);
  }
  __device__ __forceinline__ void begin_x(int block, int slot) const {
    uint64_t* full = &barriers.x_full[slot];
    const int first_row = blockIdx.x * Shape::kRows;
    const int n_operands = min(kOperands, max(0, work.n_rows - first_row + kMaxRows - 1) / kMaxRows);
    const int stage_of_tile = (group.first + block / W::kBlocks) % work.cut.n_stages;
    const int block_of_tile = stage_of_tile * W::kBlocks + block % W::kBlocks;
    const __half* from = work.x + first_row / kMaxRows * work.operand_stride +
                         static_cast<int64_t>(block_of_tile) * (kMaxRows * kOperandBlock);
    ptx::barrier_expect(full, n_operands * Shape::kOperandBytes);
    for (int i = 0; i < n_operands; ++i) {
      ptx::copy_bulk(x_at(slot) + i * Shape::kOperandBytes, from + i * work.operand_stride,
                     Shape::kOperandBytes, full);
    }
  }
  // Once all warps are done with block - 1, fills again what that leaves free. Called behind `block`, so
  // as not to wait for slower warps.
  __device__ __forceinline__ void refill(int block) const {
    if (block == 0) return;
    const int old_block = block - 1, next_block = old_block + Shape::kXSlots;
    if (next_block < n_blocks()) {
      const XSlot old(old_block);
      ptx::barrier_wait(&barriers.x_done[old.index], old.parity);
      begin_x(next_block, old.index);
    }
    const int old_stage = block / W::kBlocks - 1, next_stage = old_stage + Shape::kWeightSlots;
    if (block % W::kBlocks == 0 && next_stage < group.n()) {
      const WeightSlot old(old_stage);
      ptx::barrier_wait(&barriers.weights_done[old.index], old.parity);
      begin_weights(next_stage, old.index);
    }
  }
};

// The sums of a warp to the totals, [row][output]. Leaves zeros.
template <typename Shape, bool kAdds>
__device__ __forceinline__ void add_to_totals(float* totals,
                                              float (&sums)[Shape::kTiles][Shape::kNT][4]) {
  const int lane = only_here(threadIdx.x) % 32;
  totals += (Shape::first_column() * 8 + lane % 4 * 2) * Shape::kTotalStride + Shape::first_tile() * 16 +
            lane / 4;
#pragma unroll
  for (int nt = 0; nt < Shape::kNT; ++nt) {
#pragma unroll
    for (int m = 0; m < Shape::kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& total = totals[(nt * 8 + i % 2) * Shape::kTotalStride + m * 16 + i / 2 * 8];
        total = kAdds ? __fadd_rn(total, sums[m][nt][i]) : sums[m][nt][i];
        sums[m][nt][i] = 0.f;
      }
    }
  }
}

// What is totalled of a tile to its part, by one warp through the copy engine.
template <typename W, int kOperands>
__device__ __forceinline__ void begin_storing(const WideWork& work, int tile, int part,
                                              const float* totals) {
  using Shape = WideShape<W, kOperands>;
  const Cut& cut = work.cut;
  const int lane = threadIdx.x % 32, n_outputs = cut.n_outputs();
  const int first_row = blockIdx.x * Shape::kRows, n_rows = min(Shape::kRows, work.n_rows - first_row);
  float* to = work.parts + part * work.part_stride + static_cast<int64_t>(first_row) * n_outputs +
              tile * W::kOutputs;
  for (int row = lane; row < n_rows; row += 32) {
    ptx::copy_bulk_out(to + static_cast<int64_t>(row) * n_outputs, totals + row * Shape::kTotalStride,
                       W::kOutputs * sizeof(float));
  }
  ptx::commit_copies_out();
}

// Block (r, g) of the grid: rows from kRows * r on and group g of runs.
template <typename W, int kOperands>
__device__ __forceinline__ void multiply_group(const WideWork& work, std::byte* shared,
                                               typename WideRings<W, kOperands>::Barriers& barriers,
                                               GroupStages& group) {
  using Shape = WideShape<W, kOperands>;
  using Rings = WideRings<W, kOperands>;
  const Cut& cut = work.cut;
  const int lane = threadIdx.x % 32;
  float* totals = reinterpret_cast<float*>(shared);
  const Rings rings{.work = work,
                    .weights = shared + Shape::kTotalBytes,
                    .x = shared + Shape::kTotalBytes + Shape::kWeightSlots * W::kStageBytes,
                    .barriers = barriers,
                    .group = group};

  ptx::launch_dependents();
  group.find(cut);
  if (threadIdx.x == 0) rings.make_barriers();
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < min(Shape::kWeightSlots, group.n()); ++i) rings.begin_weights(i, i);
    ptx::wait_dependencies();  // from here on x may be read and parts may be written
    for (int i = 0; i < min(Shape::kXSlots, rings.n_blocks()); ++i) rings.begin_x(i, i);
  }
  __syncwarp();

  float sums[Shape::kTiles][Shape::kNT][4] = {};
  int n_done = 0, border = group.next_border(cut, group.first) - group.first;  // stages of the group
  bool has_totals = false;
  for (;;) {
    const typename Rings::WeightSlot weight_slot(n_done);
    ptx::barrier_wait(&barriers.weights_full[weight_slot.index], weight_slot.parity);
#pragma unroll 1
    for (int block = 0; block < W::kBlocks; ++block) {
      const int i = n_done * W::kBlocks + block;
      const typename Rings::XSlot x_slot(i);
      ptx::barrier_wait(&barriers.x_full[x_slot.index], x_slot.parity);
      multiply_block<W, Shape::kKeepsApart>(
          rings.weights_at(weight_slot.index), block,
          rings.x_at(x_slot.index) + Shape::first_column() * (8 * kOperandBlock * 2), sums,
          Shape::first_tile(), lane);
      __syncwarp();
      if (lane == 0) ptx::barrier_arrive(&barriers.x_done[x_slot.index]);
      if (threadIdx.x == 0) rings.refill(i);
      __syncwarp();
    }
    if (lane == 0) ptx::barrier_arrive(&barriers.weights_done[weight_slot.index]);
    if (++n_done < border) continue;

    const int stage = group.first + n_done;
    const bool stores = threadIdx.x >= Shape::kThreads - 32;
    if (has_totals) {
      add_to_totals<Shape, true>(totals, sums);
    } else {
      if (stores) ptx::wait_for_reads_of_copies_out();  // those of the last tile, if there was one
      __syncthreads();
      add_to_totals<Shape, false>(totals, sums);
    }
    has_totals = stage < group.end() && stage % cut.n_stages > 0;
    if (!has_totals) {
      ptx::shared_writes_for_copies();
      __syncthreads();
      const int tile = (stage - 1) / cut.n_stages;
      const int part = tile == group.first / cut.n_stages ? group.first_part : 0;
      if (stores) begin_storing<W, kOperands>(work, tile, part, totals);
    }
    if (stage == group.end()) break;
    border = group.next_border(cut, stage) - group.first;
  }
  ptx::wait_for_copies_out();
}

template <typename W, int kOperands>
__global__ void __launch_bounds__(WideShape<W, kOperands>::kThreads, 1)
    multiply_wide(const __grid_constant__ WideWork work) {
  if constexpr (kHasCopyEngine) {
    extern __shared__ __align__(128) std::byte stages[];
    __shared__ typename WideRings<W, kOperands>::Barriers barriers;
    __shared__ GroupStages group;
    static_assert(sizeof(barriers) + sizeof(group) <= kWideStateBytes);
    multiply_group<W, kOperands>(work, stages, barriers, group);
  }
}

}  // namespace forerun::cuda
