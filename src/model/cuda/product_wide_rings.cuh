// What the kernel of products with many rows keeps in shared memory, and the rings of weights and
// activations in which the copy engine runs ahead of it.
#pragma once

#include <algorithm>

#include "model/cuda/product.h"
#include "model/cuda/product_kernel.cuh"
#include "model/cuda/weights.cuh"

namespace forerun::cuda {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kHasWarpgroups = true;
#else
constexpr bool kHasWarpgroups = false;
#endif

constexpr int kWideSharedBytes = 227 * 1024;  // of a block, all that Hopper has
constexpr int kWideStateBytes = 384;          // barriers and BlockStages
constexpr int kMaxSlots = 8;

struct WideWork {
  const std::byte* weights;  // stage after stage, tile after tile
  const __half* x;           // operands of kMaxRows rows
  int64_t operand_stride;    // halves from operand to operand
  float* parts;              // [part][row][output], a part for every run, or group, in the output's tile
  int64_t part_stride;       // floats from part to part
  int n_rows;
  Cut cut;
  int runs_of_block;
  bool adds_runs;  // those of a block, which are a group: parts are sums of groups, else of runs
};

// kOperands: of 64 rows each, which a block multiplies at once. In warpgroups a warp takes all of these
// rows, and of every 64 outputs 16. Else half of the warps take the first half of these rows, the others
// the second. Launches do not depend on which: there are as many warps and as many sums.
template <typename W, int kOperands>
struct WideShape {
  static constexpr bool kInWarpgroups = kHasWarpgroups && W::kWarpgroups != Warpgroups::kNone;
  static constexpr int kWarps = 2 * W::kAllTiles / W::kWideTiles;  // that multiply
  // Where registers are left for it, a warp more fills the rings, one of four, since registers are given
  // to warpgroups: those that multiply need not wait for each other then, and while some add to totals,
  // others multiply. Else thread 0 does.
  static constexpr bool kHasFiller = W::kWarpgroups == Warpgroups::kSums;
  static constexpr int kFiller = kWarps;
  static constexpr int kThreads = 32 * (kWarps + (kHasFiller ? 4 : 0));
  // Warps that store what they have totalled when they have all of it: a warpgroup's outputs, or all.
  static constexpr int kTeams = kInWarpgroups && kHasFiller ? kWarps / 4 : 1;
  static constexpr int kTeamThreads = 32 * kWarps / kTeams, kTeamOutputs = W::kOutputs / kTeams;
  static constexpr int kTiles = kInWarpgroups ? W::kWideTiles / 2 : W::kWideTiles;  // of a warp
  static constexpr int kNT = (kInWarpgroups ? 8 : 4) * kOperands;                   // of a warp
  static constexpr int kTileStep = kInWarpgroups ? 4 : 1;  // from a warp's tile to its next
  static constexpr bool kKeepsApart = W::kNeedsManyRegisters || (kNT == 8 && kTiles == 2);
  static constexpr int kRows = kMaxRows * kOperands;
  using Sums = float[kTiles][kNT][4];
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(static_cast<unsigned>(only_here(threadIdx.x)) / 32);
  }
  static __device__ __forceinline__ int first_tile() {
    const int w = warp();
    return kInWarpgroups ? (w & ~3) * kTiles + (w & 3) : w % (kWarps / 2) * kTiles;
  }
  static __device__ __forceinline__ int first_column() {  // in units of 8 rows
    return kInWarpgroups ? 0 : warp() / (kWarps / 2) * kNT;
  }

  // Shared memory: totals, the ring of blocks of x (32 inputs each), which begins where swizzles may,
  // the ring of stages of weights, sums of these blocks of x, WideState.
  static constexpr int kTotalStride = W::kOutputs + 4;  // floats of a row: no two lanes share a bank
  static constexpr int kTotalBytes = kRows * kTotalStride * 4;
  static constexpr int kOperandBytes = kMaxRows * kOperandBlock * 2, kXBytes = kOperands * kOperandBytes;
  static constexpr int kXSumBytes = W::kHasMins ? kRows * 4 : 0;  // of a block
  static constexpr int kRoom = kWideSharedBytes - kWideStateBytes - kTotalBytes;
  static constexpr int kBoth = kRoom / (W::kStageBytes + W::kBlocks * (kXBytes + kXSumBytes));  // stages
  static constexpr int kWeightSlots = std::min(kMaxSlots, std::max(2 + 2 / W::kBlocks, kBoth));
  static constexpr int kXSlots =
      std::min(kMaxSlots, (kRoom - kWeightSlots * W::kStageBytes) / (kXBytes + kXSumBytes));
  static constexpr int kWeightsAt = kTotalBytes + kXSlots * kXBytes;
  static constexpr int kXSumsAt = kWeightsAt + kWeightSlots * W::kStageBytes;
  static constexpr int kStateAt = kXSumsAt + kXSlots * kXSumBytes;
  static constexpr int kSharedBytes = kStateAt + kWideStateBytes;
  static_assert(kXSlots >= 4 && kTotalBytes % 512 == 0 && kStateAt % 128 == 0);
};

// Where number i of what goes through a ring is, and the parity of the barriers' phase then.
template <unsigned kSlots>
struct Slot {
  unsigned index, parity;
  __device__ __forceinline__ explicit Slot(unsigned i) : index(i % kSlots), parity(i / kSlots % 2) {}
};

// The stages of a block's runs. In shared memory, since registers are scarce where it is wanted.
struct BlockStages {
  int first;
  int run_ends[Cut::kGroup];

  __device__ __forceinline__ void find(const Cut& cut, int n_runs) {
    const int i = threadIdx.x, run = blockIdx.y * n_runs;
    if (i < Cut::kGroup) run_ends[i] = cut.first(min(run + min(i + 1, n_runs), cut.n_runs));
    if (i == 0) first = cut.first(run);
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

struct WideBarriers {
  uint64_t weights_full[kMaxSlots], x_full[kMaxSlots];
  uint64_t weights_done[kMaxSlots], x_done[kMaxSlots];  // with all warps
  uint64_t x_summed[kMaxSlots];                         // by warps for 8 rows each
};
struct WideState {
  WideBarriers barriers;
  BlockStages stages;
  int next_x;  // block of a tile that is to be asked for next
};
static_assert(sizeof(WideState) <= kWideStateBytes);

// The rings. x goes block by block, as a stage of x would leave no room for a second one.
template <typename W, int kOperands>
struct WideRings {
  using Shape = WideShape<W, kOperands>;
  using WeightSlot = Slot<Shape::kWeightSlots>;
  using XSlot = Slot<Shape::kXSlots>;
  const WideWork& work;
  std::byte* shared;
  WideBarriers& barriers;
  const BlockStages& stages;
  int& next_x;

  __device__ __forceinline__ int n_blocks() const { return stages.n() * W::kBlocks; }
  __device__ __forceinline__ std::byte* x_at(int slot) const {
    return shared + Shape::kTotalBytes + slot * Shape::kXBytes;
  }
  __device__ __forceinline__ std::byte* weights_at(int slot) const {
    return shared + Shape::kWeightsAt + slot * W::kStageBytes;
  }
  __device__ __forceinline__ float2* x_sums_at(int slot) const {  // of two rows each
    return as<float2>(shared + Shape::kXSumsAt) + slot * (Shape::kRows / 2);
  }

  __device__ __forceinline__ void make_barriers(int slot) const {
    ptx::barrier_init(&barriers.weights_full[slot], 1);
    ptx::barrier_init(&barriers.x_full[slot], 1);
    ptx::barrier_init(&barriers.weights_done[slot], Shape::kWarps);
    ptx::barrier_init(&barriers.x_done[slot], Shape::kWarps);
    ptx::barrier_init(&barriers.x_summed[slot], Shape::kRows / 8);
    ptx::barriers_ready();
  }
  // By one thread, which is the one that refills.
  __device__ __forceinline__ void begin() const {
    for (int i = 0; i < min(Shape::kWeightSlots, stages.n()); ++i) begin_weights(i, i);
    ptx::wait_dependencies();  // from here on x may be read and parts may be written
    next_x = stages.first % work.cut.n_stages * W::kBlocks;
    for (int i = 0; i < min(Shape::kXSlots, n_blocks()); ++i) begin_next_x(i);
  }
  __device__ __forceinline__ void begin_weights(int stage, int slot) const {
    uint64_t* full = &barriers.weights_full[slot];
    ptx::barrier_expect(full, W::kStageBytes);
    ptx::copy_bulk(weights_at(slot), work.weights + int64_t{stages.first + stage} * W::kStageBytes,
                   W::kStageBytes, full);
  }
  // Blocks are asked for in order: whoever does has no time for divisions.
  __device__ __forceinline__ void begin_next_x(int slot) const {
    uint64_t* full = &barriers.x_full[slot];
    const int first_row = blockIdx.x * Shape::kRows;
    const int n_operands = min(kOperands, (work.n_rows - first_row + kMaxRows - 1) / kMaxRows);
    const int block = next_x;
    next_x = block + 1 < work.cut.n_stages * W::kBlocks ? block + 1 : 0;
    const __half* from = work.x + first_row / kMaxRows * work.operand_stride +
                         int64_t{block} * (kMaxRows * kOperandBlock);
    ptx::barrier_expect(full, n_operands * Shape::kOperandBytes);
#pragma unroll
    for (int i = 0; i < kOperands; ++i) {
      if (i == n_operands) break;
      ptx::copy_bulk(x_at(slot) + i * Shape::kOperandBytes, from + i * work.operand_stride,
                     Shape::kOperandBytes, full);
    }
  }
  // All blocks, by a thread that does nothing else.
  __device__ __forceinline__ void fill() const {
    begin();
    for (int block = 1; block < n_blocks(); ++block) refill(block);
  }
  // Once all warps are done with block - 1, fills again what that leaves free. Called behind `block`, so
  // as not to wait for slower warps.
  __device__ __forceinline__ void refill(int block) const {
    if (block == 0) return;
    const int old_block = block - 1, next_block = old_block + Shape::kXSlots;
    if (next_block < n_blocks()) {
      const XSlot old(old_block);
      ptx::barrier_wait(&barriers.x_done[old.index], old.parity);
      begin_next_x(old.index);
    }
    const int old_stage = block / W::kBlocks - 1, next_stage = old_stage + Shape::kWeightSlots;
    if (block % W::kBlocks == 0 && next_stage < stages.n()) {
      const WeightSlot old(old_stage);
      ptx::barrier_wait(&barriers.weights_done[old.index], old.parity);
      begin_weights(next_stage, old.index);
    }
  }
};

}  // namespace forerun::cuda
