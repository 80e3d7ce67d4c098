// How warpgroups multiply, in products with many rows. Every sum is made of the operations of
// multiply_block(), in the same order.
#pragma once

#include "model/cuda/product_wide_rings.cuh"
#include "model/cuda/ptx_wgmma.cuh"

namespace forerun::cuda {

// In warpgroups, where products are added to the sums as they are: those of 16 inputs run while weights
// of the next 16 are fetched to other registers.
template <typename W, int kOperands>
__device__ __forceinline__ void walk_in_warpgroups(const WideRings<W, kOperands>& rings, int stage,
                                                   int end,
                                                   typename WideShape<W, kOperands>::Sums& sums) {
  using Shape = WideShape<W, kOperands>;
  using Rings = WideRings<W, kOperands>;
  static_assert(W::kBlocks == 1);
  const int lane = threadIdx.x % 32, first_tile = Shape::first_tile();
  const auto release = [&](uint64_t* done) {
    __syncwarp();
    if (lane == 0) ptx::barrier_arrive(done);
  };
  uint32_t first_a[Shape::kTiles][4], second_a[Shape::kTiles][4];
  const auto begin = [&](const std::byte* weights, const std::byte* x, int half,
                         uint32_t(&a)[Shape::kTiles][4]) {
#pragma unroll
    for (int m = 0; m < Shape::kTiles; ++m) {
      W::load(weights, 0, first_tile + m * Shape::kTileStep, half, lane, a[m]);
    }
    const uint64_t b = ptx::wgmma_operand(x + half * 32);
    ptx::wgmma_fence();
#pragma unroll
    for (int m = 0; m < Shape::kTiles; ++m) ptx::wgmma_f16<true>(sums[m], a[m], b);
    ptx::wgmma_commit();
  };

#pragma unroll 1
  for (int i = stage; i < end; ++i) {
    const typename Rings::WeightSlot weight_slot(i);
    const typename Rings::XSlot x_slot(i), last_x_slot(i - 1);
    const std::byte* weights = rings.weights_at(weight_slot.index);
    const std::byte* x = rings.x_at(x_slot.index);
    ptx::barrier_wait(&rings.barriers.weights_full[weight_slot.index], weight_slot.parity);
    ptx::barrier_wait(&rings.barriers.x_full[x_slot.index], x_slot.parity);
    begin(weights, x, 0, first_a);
    ptx::wgmma_wait<1>();  // the last block is done, and second_a is free
    if (i > stage) release(&rings.barriers.x_done[last_x_slot.index]);
    begin(weights, x, 1, second_a);
    release(&rings.barriers.weights_done[weight_slot.index]);
    ptx::wgmma_wait<1>();  // first_a is free
  }
  ptx::wgmma_wait<0>();
#pragma unroll
  for (int m = 0; m < Shape::kTiles; ++m) ptx::wgmma_results(sums[m]);
  release(&rings.barriers.x_done[typename Rings::XSlot(end - 1).index]);
}

// --- products of blocks, which are scaled and then added ---

// Sums of block i of x over its inputs, where what is added to weights needs them: a warp makes those of
// 8 rows for all.
template <typename W, int kOperands>
__device__ __forceinline__ void sum_x(const WideRings<W, kOperands>& rings, int i) {
  using Shape = WideShape<W, kOperands>;
  const int warp = Shape::warp(), lane = threadIdx.x % 32;
  if (warp >= Shape::kRows / 8) return;
  const typename WideRings<W, kOperands>::XSlot slot(i);
  ptx::barrier_wait(&rings.barriers.x_full[slot.index], slot.parity);
  const auto columns = W::columns(load_pairs(rings.x_at(slot.index), warp, lane));
  if (lane < 4) {
    rings.x_sums_at(slot.index)[warp * 4 + lane] = make_float2(columns.sums[0], columns.sums[1]);
  }
  __syncwarp();
  if (lane == 0) ptx::barrier_arrive(&rings.barriers.x_summed[slot.index]);
}

// Block i of the threads' runs, which is number `block` of a stage. Products of 64 rows are under way at
// a time; meanwhile other warpgroups scale theirs.
template <typename W, int kOperands>
__device__ __forceinline__ void multiply_in_warpgroup(const WideRings<W, kOperands>& rings,
                                                      int weight_slot, int block, int i,
                                                      typename WideShape<W, kOperands>::Sums& sums) {
  using Shape = WideShape<W, kOperands>;
  static_assert(Shape::kTiles == 1);
  const typename WideRings<W, kOperands>::XSlot slot(i);
  const int lane = threadIdx.x % 32, tile = Shape::first_tile();
  const std::byte* weights = rings.weights_at(weight_slot);
  if constexpr (W::kHasMins) {
    if (i + 1 < rings.n_blocks()) sum_x(rings, i + 1);
    ptx::barrier_wait(&rings.barriers.x_summed[slot.index], slot.parity);
  }
  BlockOperand a;
  W::unpack(weights, block, tile & ~1, tile & 1, lane, a);
  const BlockScales scales = W::scales(weights, block, tile, lane / 4);
#pragma unroll
  for (int part = 0; part < kOperands; ++part) {
    const std::byte* x = rings.x_at(slot.index) + part * Shape::kOperandBytes;
    const uint64_t first = ptx::wgmma_operand(x), second = ptx::wgmma_operand(x + 32);
    float c[8][4];
    const auto add_product = [&](const float(&scale)[2]) {
      ptx::wgmma_wait<0>();
      ptx::wgmma_results(c);
#pragma unroll
      for (int nt = 0; nt < 8; ++nt) W::add_scaled(c[nt], scale, sums[0][part * 8 + nt]);
    };
    ptx::wgmma_fence();
    ptx::wgmma_f16<false>(c, a[0], first);
    if constexpr (W::kSixteens) {
      ptx::wgmma_commit();
      add_product(scales.scale[0]);
      ptx::wgmma_fence();
    }
    ptx::wgmma_f16<!W::kSixteens>(c, a[1], second);
    ptx::wgmma_commit();
    if constexpr (W::kHasMins) {
      const float2* of_x = rings.x_sums_at(slot.index) + part * 32 + lane % 4;
#pragma unroll
      for (int nt = 0; nt < 8; ++nt) {
        const float2 two = of_x[nt * 4];
        const float of_rows[4] = {two.x, two.y, two.x, two.y};
        W::add_scaled(of_rows, scales.min, sums[0][part * 8 + nt]);
      }
    }
    add_product(scales.scale[1]);
  }
}

}  // namespace forerun::cuda
