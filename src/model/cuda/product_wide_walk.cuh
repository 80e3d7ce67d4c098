// How the warps of a block walk the stages of a run, in products with many rows.
#pragma once

#include "model/cuda/product_wide_rings.cuh"
#include "model/cuda/product_wide_warpgroups.cuh"

namespace forerun::cuda {

// One block after the other.
template <typename W, int kOperands>
__device__ __forceinline__ void walk_blocks(const WideRings<W, kOperands>& rings, int stage, int end,
                                            typename WideShape<W, kOperands>::Sums& sums) {
  using Shape = WideShape<W, kOperands>;
  using Rings = WideRings<W, kOperands>;
  const int lane = threadIdx.x % 32;
  if constexpr (Shape::kInWarpgroups && W::kHasMins) {
    if (stage == 0) sum_x(rings, 0);
  }
  for (; stage < end; ++stage) {
    const typename Rings::WeightSlot weight_slot(stage);
    ptx::barrier_wait(&rings.barriers.weights_full[weight_slot.index], weight_slot.parity);
#pragma unroll 1
    for (int block = 0; block < W::kBlocks; ++block) {
      const int i = stage * W::kBlocks + block;
      const typename Rings::XSlot x_slot(i);
      ptx::barrier_wait(&rings.barriers.x_full[x_slot.index], x_slot.parity);
      if constexpr (Shape::kInWarpgroups) {
        multiply_in_warpgroup(rings, weight_slot.index, block, i, sums);
      } else {
        multiply_block<W, Shape::kKeepsApart>(
            rings.weights_at(weight_slot.index), block,
            rings.x_at(x_slot.index) + Shape::first_column() * (8 * kOperandBlock * 2), sums,
            Shape::first_tile(), lane);
      }
      __syncwarp();
      if (lane == 0) ptx::barrier_arrive(&rings.barriers.x_done[x_slot.index]);
      if constexpr (!Shape::kHasFiller) {
        if (threadIdx.x == 0) rings.refill(i);
        __syncwarp();
      }
    }
    if (lane == 0) ptx::barrier_arrive(&rings.barriers.weights_done[weight_slot.index]);
  }
}

// Adds the products of stages [stage, end) of the threads' runs to the sums.
template <typename W, int kOperands>
__device__ __forceinline__ void walk(const WideRings<W, kOperands>& rings, int stage, int end,
                                     typename WideShape<W, kOperands>::Sums& sums) {
  using Shape = WideShape<W, kOperands>;
  if constexpr (Shape::kInWarpgroups && W::kWarpgroups == Warpgroups::kSums) {
    walk_in_warpgroups(rings, stage, end, sums);
  } else {
    walk_blocks(rings, stage, end, sums);
  }
}

}  // namespace forerun::cuda
