// The kernel of products with experts: a block of threads multiplies a run of one expert's matrix, or a
// group of runs, with the rows of an item (experts.h).
//
// Which weights it reads is known when the kernel ahead has ended, not before.
#pragma once

#include "model/cuda/product_kernel.cuh"

namespace forerun::cuda {

struct ExpertsWork {
  const std::byte* weights[2];  // of up to two matrices: those of all experts, one behind the other
  int64_t expert_bytes;         // from expert to expert
  const __half* x;
  int64_t item_halves;     // from the operand of an item to the next; 0: all have the same
  float* parts;            // [matrix][part][route][output]
  int64_t matrix_floats;   // from matrix to matrix
  int64_t part_stride;     // from part to part
  const int32_t* experts;  // Routing
  const int32_t* columns;
  int n_matrices, n_items;
  int width;  // columns of an item
  int n_ring;
  Cut cut;  // of each expert's matrix
  int runs_of_block;
  bool adds_runs;  // those of a block, which are a group: parts are sums of groups, else of runs
};

// Block (b, m, i) of the grid: the b-th of as many runs as a block has, matrix m, item i.
template <typename W, int NT>
__global__ void __launch_bounds__(kThreads, 2)
    multiply_expert_rows(const __grid_constant__ ExpertsWork work) {
  extern __shared__ __align__(128) std::byte stages[];
  __shared__ uint64_t full[kMaxRing], empty[kMaxRing];
  __shared__ int columns[NT * 8];

  const Cut& cut = work.cut;
  int run = blockIdx.x * work.runs_of_block;
  const int first = cut.first(run);
  const int n = cut.first(min(run + work.runs_of_block, cut.n_runs)) - first;
  ProductWork of_item{.weights = work.weights[blockIdx.y],
                      .x = work.x + blockIdx.z * work.item_halves,
                      .parts = work.parts + blockIdx.y * work.matrix_floats,
                      .part_stride = work.part_stride,
                      .n_rows = NT * 8,
                      .padded_rows = NT * 8,
                      .n_ring = work.n_ring,
                      .cut = cut};
  Ring<W, NT> ring{.work = of_item,
                   .stages = stages,
                   .full = full,
                   .empty = empty,
                   .first = first,
                   .fills = !kHasCopyEngine || threadIdx.x == 0};
  ptx::launch_dependents();
  if (threadIdx.x == 0) ring.make_barriers();
  ptx::wait_dependencies();
  const int expert = __ldcg(work.experts + blockIdx.z);
  if (expert < 0) return;  // nobody's item
  of_item.weights += expert * work.expert_bytes;
  const auto begin = [&] {
    for (int i = 0; i < min(work.n_ring, n); ++i) ring.begin(i, i);
  };
  if (kHasCopyEngine && ring.fills) begin();
  if (threadIdx.x < NT * 8) {
    columns[threadIdx.x] = __ldcg(work.columns + blockIdx.z * (NT * 8) + threadIdx.x);
  }
  __syncthreads();
  if (!kHasCopyEngine) begin();

  // Where a run or a tile ends, the sums go to their part, or are added to what the runs of the block
  // before have there.
  int run_end = cut.first(run + 1), last_tile = -1;
  const auto n_until_border = [&](int stage) {
    return min(run_end - stage, cut.n_stages - stage % cut.n_stages);
  };
  const auto store_run = [&](int n_done, float(&sums)[W::kTiles][NT][4]) {
    const int tile = (first + n_done - 1) / cut.n_stages, first_run = cut.run_of(tile * cut.n_stages);
    const int part = work.adds_runs ? run / Cut::kGroup - first_run / Cut::kGroup : run - first_run;
    store<W, NT>(
        of_item.parts + part * work.part_stride + tile * W::kOutputs, cut.n_outputs(),
        work.adds_runs && tile == last_tile, [&](int column) { return columns[column]; }, sums);
    last_tile = tile;
    if (first + n_done == run_end) run_end = cut.first(++run + 1);
    return n_until_border(first + n_done);
  };
  multiply_stages(ring, n, n_until_border(first), store_run);
}

}  // namespace forerun::cuda
