// The kernel of products: a ring of stages in shared memory, filled while others are multiplied. A block
// of threads has a run.
//
// From Hopper on one thread has the copy engine fill it, and weights, which do not depend on the kernel
// before, are fetched while that one still runs. On Ampere and Ada all threads copy. Either way the
// arithmetic is the same, and so are the bits.
#pragma once

#include "model/cuda/product.h"
#include "model/cuda/weights.cuh"

namespace forerun::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool kHasCopyEngine = true;
#else
constexpr bool kHasCopyEngine = false;
#endif

constexpr int kMaxRing = 8;  // stages
constexpr int kMinRing = 2;

struct ProductWork {
  const std::byte* weights;  // stage after stage, tile after tile
  const __half* x;
  float* parts;
  int64_t part_stride;  // floats from part to part
  int n_rows;
  int padded_rows;  // of x
  int n_ring;       // stages in shared memory
  Cut cut;
};

// Keeps the compiler from computing what follows from v before the loop: registers are scarce there.
__device__ __forceinline__ int only_here(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

// A stage in shared memory: weights, and x for the same inputs.
template <typename W, int NT>
struct RingStage {
  static constexpr int kXBytes = W::kBlocks * NT * 8 * kOperandBlock * 2;
  static constexpr int kBytes = W::kStageBytes + kXBytes;
  static_assert(W::kStageBytes % 128 == 0);
};

// The ring, and who fills it.
template <typename W, int NT>
struct Ring {
  using Stage = RingStage<W, NT>;
  const ProductWork& work;
  std::byte* stages;
  uint64_t* full;   // [n_ring] barriers: the stage is there
  uint64_t* empty;  // all warps are done with it
  int first;        // stage of the matrix that is the block's first
  bool fills;       // whether this thread has a part in it

  __device__ __forceinline__ const std::byte* weights_of(int i) const {
    return work.weights + static_cast<int64_t>(first + i) * W::kStageBytes;
  }
  __device__ __forceinline__ const std::byte* x_of(int i) const {
    const int64_t stage_of_tile = (first + i) % work.cut.n_stages;
    return reinterpret_cast<const std::byte*>(work.x) + stage_of_tile * Stage::kXBytes;
  }
  __device__ __forceinline__ std::byte* stage(int slot) const { return stages + slot * Stage::kBytes; }

  __device__ __forceinline__ void make_barriers() {
    for (int slot = 0; slot < work.n_ring; ++slot) {
      ptx::barrier_init(&full[slot], kHasCopyEngine ? 1 : kThreads);
      ptx::barrier_init(&empty[slot], kWarps);
    }
    if constexpr (kHasCopyEngine) ptx::barriers_ready();
  }

  __device__ __forceinline__ void begin_weights(int i, int slot) {
    ptx::barrier_expect(&full[slot], Stage::kBytes);
    ptx::copy_bulk(stage(slot), weights_of(i), W::kStageBytes, &full[slot], ptx::evict_first());
  }
  __device__ __forceinline__ void begin_x(int i, int slot) {
    ptx::copy_bulk(stage(slot) + W::kStageBytes, x_of(i), Stage::kXBytes, &full[slot]);
  }
  // All of stage i, of the block's.
  __device__ __forceinline__ void begin(int i, int slot) {
    if constexpr (kHasCopyEngine) {
      begin_weights(i, slot);
      begin_x(i, slot);
    } else {
      copy_share(stage(slot), weights_of(i), W::kStageBytes);
      copy_share(stage(slot) + W::kStageBytes, x_of(i), Stage::kXBytes);
      ptx::barrier_arrive_after_copies(&full[slot]);
    }
  }
  __device__ __forceinline__ void copy_share(std::byte* to, const std::byte* from, int n_bytes) {
    for (int at = only_here(threadIdx.x) * 16; at < n_bytes; at += kThreads * 16) {
      ptx::copy_16(to + at, from + at);
    }
  }
};

template <typename W, int NT>
__device__ __forceinline__ void multiply_stage(const std::byte* stage, float (&sums)[W::kTiles][NT][4],
                                               int warp, int lane) {
  constexpr int kUnroll = NT <= 2 ? W::kBlocks : 1;    // with many columns one block is work enough
  constexpr int kXBytes = NT * 8 * kOperandBlock * 2;  // of a block
  const std::byte* x = stage + W::kStageBytes;
#pragma unroll kUnroll
  for (int block = 0; block < W::kBlocks; ++block) {
    multiply_block<W, NT == 8 && W::kNeedsManyRegisters>(stage, block, x + block * kXBytes, sums,
                                                         warp * W::kTiles, lane);
  }
}

// The sums of a tile, or what they add to those that are there, to rows that begin at `to`, each with so
// many outputs. row_of(column) is the row of a column, -1 if it has none. Leaves zeros.
template <typename W, int NT, typename RowOf>
__device__ __forceinline__ void store(float* to, int n_outputs, bool adds, RowOf row_of,
                                      float (&sums)[W::kTiles][NT][4]) {
  const int warp = only_here(threadIdx.x) / 32, lane = only_here(threadIdx.x) % 32;
  to += warp * W::kTiles * 16 + lane / 4;
#pragma unroll
  for (int nt = 0; nt < NT; ++nt) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(nt * 8 + lane % 4 * 2 + i);
      float* of_row = to + static_cast<int64_t>(row) * n_outputs;
#pragma unroll
      for (int m = 0; m < W::kTiles; ++m) {
        if (row >= 0) {
          const float first = sums[m][nt][i], second = sums[m][nt][2 + i];
          of_row[m * 16] = adds ? __fadd_rn(of_row[m * 16], first) : first;
          of_row[m * 16 + 8] = adds ? __fadd_rn(of_row[m * 16 + 8], second) : second;
        }
        sums[m][nt][i] = sums[m][nt][2 + i] = 0.f;
      }
    }
  }
}

// Multiplies stages [0, n) of the ring, which is full or as full as these make it. Behind `n_left`
// stages, and behind the last, it calls store_sums(stages so far, sums), which leaves zeros and says how
// many there are until it wants to be called again.
template <typename W, int NT, typename StoreSums>
__device__ __forceinline__ void multiply_stages(Ring<W, NT>& ring, int n, int n_left,
                                                StoreSums store_sums) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int n_ring = ring.work.n_ring;
  // Fills the slot of stage i - 1 again, once all warps are done with that.
  const auto refill = [&](int i, int slot, int parity) {
    if (ring.fills && i > 0 && i - 1 + n_ring < n) {
      const int old_slot = slot == 0 ? n_ring - 1 : slot - 1;
      ptx::barrier_wait(&ring.empty[old_slot], slot == 0 ? parity ^ 1 : parity);
      ring.begin(i - 1 + n_ring, old_slot);
    }
    __syncwarp();
  };
  // Late, so as not to wait for slower warps; but with two stages the next would not be under way.
  const bool refills_early = n_ring == kMinRing;

  float sums[W::kTiles][NT][4] = {};
  int slot = 0, parity = 0;
  for (int i = 0; i < n; ++i) {
    ptx::barrier_wait(&ring.full[slot], parity);
    if (refills_early) refill(i, slot, parity);
    multiply_stage<W, NT>(ring.stage(slot), sums, warp, lane);
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(&ring.empty[slot]);
    if (!refills_early) refill(i, slot, parity);
    if (++slot == n_ring) slot = 0, parity ^= 1;

    if (--n_left > 0 && i + 1 < n) continue;
    n_left = store_sums(i + 1, sums);
  }
}

// Two blocks fit on an SM, so that blocks of the next product move in, and fetch weights, while the last
// of this one's finish. NT: columns of the tensor cores, in units of 8 rows of x.
template <typename W, int NT>
__global__ void __launch_bounds__(kThreads, 2) multiply_rows(const __grid_constant__ ProductWork work) {
  extern __shared__ __align__(128) std::byte stages[];
  __shared__ uint64_t full[kMaxRing], empty[kMaxRing];

  const int n_ring = work.n_ring;
  const int first = work.cut.first(blockIdx.x), n = work.cut.first(blockIdx.x + 1) - first;
  Ring<W, NT> ring{.work = work,
                   .stages = stages,
                   .full = full,
                   .empty = empty,
                   .first = first,
                   .fills = !kHasCopyEngine || threadIdx.x == 0};

  if constexpr (kHasCopyEngine) {
    ptx::launch_dependents();
    if (ring.fills) {
      ring.make_barriers();
      for (int i = 0; i < min(n_ring, n); ++i) ring.begin_weights(i, i);
      ptx::wait_dependencies();  // from here on x may be read and parts may be written
      for (int i = 0; i < min(n_ring, n); ++i) ring.begin_x(i, i);
    }
    __syncthreads();
  } else {
    if (threadIdx.x == 0) ring.make_barriers();
    __syncthreads();
    for (int i = 0; i < min(n_ring, n); ++i) ring.begin(i, i);
  }

  // Where a tile ends, its sums, as far as this block has them, go to their part.
  const auto store_tile = [&](int n_done, float(&sums)[W::kTiles][NT][4]) {
    const int tile = (first + n_done - 1) / work.cut.n_stages;
    const int part = blockIdx.x - work.cut.run_of(tile * work.cut.n_stages);
    const int n_rows = only_here(work.n_rows);
    store<W, NT>(
        work.parts + part * work.part_stride + tile * W::kOutputs, only_here(work.cut.n_outputs()),
        false, [&](int column) { return column < n_rows ? column : -1; }, sums);
    return work.cut.n_stages;
  };
  multiply_stages(ring, n, work.cut.n_stages - first % work.cut.n_stages, store_tile);
}

}  // namespace forerun::cuda
