// The kernel of products with many rows, for Hopper: a block of threads multiplies a tile of outputs
// with 64 or 128 rows, so that weights are read once for these.
//
// Its sums have the bits of product_kernel.cuh's: it walks its runs in order, and begins again with
// zeros where one ends. What a run has of a tile is a part of that. Of rows enough for 33 groups of
// eight runs to be blocks for all SMs of an H200, four times 128, a block has a group: it adds what its
// runs have of a tile to a total in shared memory, which is one part.
#pragma once

#include "model/cuda/product_wide_rings.cuh"
#include "model/cuda/product_wide_walk.cuh"

namespace forerun::cuda {

// The sums of a warp to the totals, [row][output]. Leaves zeros.
template <typename Shape, bool kAdds>
__device__ __forceinline__ void add_to_totals(float* totals, typename Shape::Sums& sums) {
  const int lane = only_here(threadIdx.x) % 32;
  totals += (Shape::first_column() * 8 + lane % 4 * 2) * Shape::kTotalStride + Shape::first_tile() * 16 +
            lane / 4;
#pragma unroll
  for (int nt = 0; nt < Shape::kNT; ++nt) {
#pragma unroll
    for (int m = 0; m < Shape::kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& total =
            totals[(nt * 8 + i % 2) * Shape::kTotalStride + m * (Shape::kTileStep * 16) + i / 2 * 8];
        total = kAdds ? __fadd_rn(total, sums[m][nt][i]) : sums[m][nt][i];
        sums[m][nt][i] = 0.f;
      }
    }
  }
}

// What a team has totalled of a tile to its part, by one of its warps through the copy engine.
template <typename W, int kOperands>
__device__ __forceinline__ void begin_storing(const WideWork& work, int tile, int part,
                                              const float* totals) {
  using Shape = WideShape<W, kOperands>;
  const Cut& cut = work.cut;
  const int lane = threadIdx.x % 32, n_outputs = cut.n_outputs();
  const int first_row = blockIdx.x * Shape::kRows, n_rows = min(Shape::kRows, work.n_rows - first_row);
  const int first_output = static_cast<int>(threadIdx.x) / Shape::kTeamThreads * Shape::kTeamOutputs;
  float* to = work.parts + part * work.part_stride + static_cast<int64_t>(first_row) * n_outputs +
              tile * W::kOutputs + first_output;
  totals += first_output;
  for (int row = lane; row < n_rows; row += 32) {
    ptx::copy_bulk_out(to + static_cast<int64_t>(row) * n_outputs, totals + row * Shape::kTotalStride,
                       Shape::kTeamOutputs * sizeof(float));
  }
  ptx::commit_copies_out();
}

// Which part of a tile's sums a block has that ends or goes on at `stage`.
__device__ __forceinline__ int part_of(const WideWork& work, int tile, int stage) {
  const int run = work.cut.run_of(stage - 1), first_run = work.cut.run_of(tile * work.cut.n_stages);
  return work.adds_runs ? run / Cut::kGroup - first_run / Cut::kGroup : run - first_run;
}

// Block (r, b) of the grid: rows from kRows * r on, and the b-th of as many runs as a block has.
template <typename W, int kOperands>
__device__ __forceinline__ void multiply_runs(const WideWork& work, std::byte* shared) {
  using Shape = WideShape<W, kOperands>;
  const Cut& cut = work.cut;
  float* totals = as<float>(shared);
  WideState& state = *as<WideState>(shared + Shape::kStateAt);
  BlockStages& stages = state.stages;
  const WideRings<W, kOperands> rings{.work = work,
                                      .shared = shared,
                                      .barriers = state.barriers,
                                      .stages = stages,
                                      .next_x = state.next_x};

  ptx::launch_dependents();
  stages.find(cut, work.runs_of_block);
  if (threadIdx.x < kMaxSlots) rings.make_barriers(static_cast<int>(threadIdx.x));
  __syncthreads();
  if constexpr (Shape::kHasFiller) {
    constexpr int kFew = 40,
                  kMany = 232;  // registers, of three warpgroups together what they began with
    if (Shape::warp() >= Shape::kFiller) {
      if constexpr (Shape::kInWarpgroups) ptx::leave_registers<kFew>();
      if (threadIdx.x == 32 * Shape::kFiller) rings.fill();
      return;
    }
    if constexpr (Shape::kInWarpgroups) ptx::take_registers<kMany>();
  } else {
    if (threadIdx.x == 0) rings.begin();
    __syncwarp();
  }

  const int team_thread = threadIdx.x % Shape::kTeamThreads;
  const bool stores = team_thread >= Shape::kTeamThreads - 32;
  const auto sync_team = [] {
    ptx::sync_threads(1 + only_here(threadIdx.x) / Shape::kTeamThreads, Shape::kTeamThreads);
  };
  typename Shape::Sums sums = {};
  int n_done = 0;  // stages
  bool has_totals = false;
  for (;;) {
    const int border = stages.next_border(cut, stages.first + n_done) - stages.first;
    walk(rings, n_done, border, sums);
    n_done = border;

    const int stage = stages.first + n_done;
    if (has_totals) {
      add_to_totals<Shape, true>(totals, sums);
    } else {
      if (stores) ptx::wait_for_reads_of_copies_out();  // those of the last tile, if there was one
      sync_team();
      add_to_totals<Shape, false>(totals, sums);
    }
    has_totals = work.adds_runs && stage < stages.end() && stage % cut.n_stages > 0;
    if (!has_totals) {
      ptx::shared_writes_for_copies();
      sync_team();
      const int tile = (stage - 1) / cut.n_stages;
      if (stores) begin_storing<W, kOperands>(work, tile, part_of(work, tile, stage), totals);
    }
    if (stage == stages.end()) break;
  }
  ptx::wait_for_copies_out();
}

template <typename W, int kOperands>
__global__ void __launch_bounds__(WideShape<W, kOperands>::kThreads, 1)
    multiply_wide(const __grid_constant__ WideWork work) {
  if constexpr (kHasCopyEngine) {
    // Nothing else is in shared memory, so that this begins where swizzles may.
    extern __shared__ __align__(128) std::byte stages[];
    if (ptx::address(stages) % 512 != 0) __trap();
    multiply_runs<W, kOperands>(work, stages);
  }
}

}  // namespace forerun::cuda
