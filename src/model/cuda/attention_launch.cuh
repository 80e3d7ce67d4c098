// How the chunk kernel of attention is launched; attend_f16() and attend_q8_0() are its two kinds of
// caches, compiled apart.
#pragma once

#include <algorithm>

#include "core/check.h"
#include "model/cuda/attention_kernel.cuh"
#include "model/cuda/attention_wide_kernel.cuh"
#include "model/cuda/launch.cuh"

namespace forerun::cuda {

void attend_f16(const AttentionWork& work, cudaStream_t stream);
void attend_q8_0(const AttentionWork& work, cudaStream_t stream);

// A kernel of attention, for blocks of n_tiles tiles of queries, which needs so much shared memory beside
// its stages.
struct AttendKernel {
  void (*kernel)(AttentionWork, AttendPlan);
  int n_tiles;
  int fixed_bytes, stage_bytes;
  int n_blocks;    // of a multiprocessor, if at least three stages fit then
  int min_stages;  // that it needs
};

// As many stages as fit, and as many blocks as fit then. False: its stages do not fit.
inline bool try_attend(const AttendKernel& attend, const AttentionWork& work, cudaStream_t stream) {
  constexpr int kReserved = 1024;  // per block
  const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int half = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - kReserved;
  const auto stages_in = [&](int bytes) {
    return std::min((bytes - attend.fixed_bytes) / attend.stage_bytes, kMostStages);
  };
  int n_stages = stages_in(most);
  if (attend.n_blocks == 2 && stages_in(half) >= 3) n_stages = stages_in(half);
  if (n_stages < attend.min_stages) return false;

  const auto shared_bytes = static_cast<size_t>(n_stages * attend.stage_bytes + attend.fixed_bytes);
  check(cudaFuncSetAttribute(attend.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)),
        "prepare attention");
  int n_blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, attend.kernel, kAttendThreads,
                                                      shared_bytes),
        "prepare attention");
  CHECK(n_blocks > 0);
  n_blocks *= device_attribute(cudaDevAttrMultiProcessorCount);
  const int n_queries = std::min(work.n_rows * work.shape.heads_per_kv(),
                                 std::max(work.n_tiles * kTileQueries, work.shape.heads_per_kv()));
  const int of_block = attend.n_tiles * kTileQueries;
  launch(attend.kernel,
         {.blocks = dim3(static_cast<unsigned>(n_blocks)),
          .threads = kAttendThreads,
          .shared_bytes = shared_bytes},
         stream, work,
         AttendPlan{.scores = Scores(work.shape),
                    .heads_per_kv = work.shape.heads_per_kv(),
                    .n_shares = (n_queries + of_block - 1) / of_block,
                    .n_stages = n_stages});
  return true;
}

template <typename Cells, int kTiles>
AttendKernel narrow_kernel() {
  constexpr int kDim = Cells::kDim;
  return {.kernel = attend_kernel<Cells, kTiles>,
          .n_tiles = kTiles,
          .fixed_bytes = static_cast<int>(sizeof(AttendShared<kDim, kTiles>)) + Cells::kTileUnits * 16,
          .stage_bytes = Cells::kStageUnits * 16,
          .n_blocks = kAttendBlocks<kDim, kTiles>,
          .min_stages = kTiles > 1 ? 2 : 1};
}

// The kernel of the widest blocks that there is room for.
template <typename Cells>
void attend_with(const AttentionWork& work, cudaStream_t stream) {
  if (work.n_tiles > 1) {
    if constexpr (Cells::kHasWide) {
      const AttendKernel wide{.kernel = attend_wide_kernel<Cells>,
                              .n_tiles = kWideTiles,
                              .fixed_bytes = sizeof(WideAttendShared<Cells::kDim>),
                              .stage_bytes = Cells::kStageUnits * 16,
                              .n_blocks = 1,
                              .min_stages = 3};
      if (try_attend(wide, work, stream)) return;
    } else if constexpr (Cells::kDim <= 128) {
      if (work.n_tiles > 2 && try_attend(narrow_kernel<Cells, 4>(), work, stream)) return;
    }
    if (try_attend(narrow_kernel<Cells, 2>(), work, stream)) return;
  }
  CHECK((try_attend(narrow_kernel<Cells, 1>(), work, stream)));
}

}  // namespace forerun::cuda
