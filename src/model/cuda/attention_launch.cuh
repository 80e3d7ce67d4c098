// How the chunk kernel of attention is launched; attend_f16() and attend_q8_0() are its two kinds of
// caches, compiled apart.
#pragma once

#include <algorithm>

#include "core/check.h"
#include "model/cuda/attention_kernel.cuh"
#include "model/cuda/launch.cuh"

namespace forerun::cuda {

void attend_f16(const AttentionWork& work, cudaStream_t stream);
void attend_q8_0(const AttentionWork& work, cudaStream_t stream);

// As many stages as fit, and as many blocks as fit then.
template <typename Cells, int kTiles>
void attend_with(const AttentionWork& work, cudaStream_t stream) {
  constexpr int kDim = Cells::kDim;
  constexpr int kFixed = static_cast<int>(sizeof(AttendShared<kDim, kTiles>)) + Cells::kTileUnits * 16;
  constexpr int kStage = Cells::kStageUnits * 16;
  constexpr int kReserved = 1024;  // per block
  const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int half = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - kReserved;
  const auto stages_in = [&](int bytes) { return std::min((bytes - kFixed) / kStage, kMostStages); };
  int n_stages = stages_in(most);
  if (kAttendBlocks<kDim, kTiles> == 2 && stages_in(half) >= 3) n_stages = stages_in(half);
  if (n_stages < (kTiles > 1 ? 2 : 1)) {
    if constexpr (kTiles > 1) return attend_with<Cells, kTiles / 2>(work, stream);
    CHECK(n_stages >= 1);
  }

  const auto kernel = attend_kernel<Cells, kTiles>;
  const size_t shared_bytes = static_cast<size_t>(n_stages * kStage + kFixed);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)),
        "prepare attention");
  int n_blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, kernel, kAttendThreads, shared_bytes),
        "prepare attention");
  CHECK(n_blocks > 0);
  n_blocks *= device_attribute(cudaDevAttrMultiProcessorCount);
  const int n_queries = std::min(work.n_rows * work.shape.heads_per_kv(),
                                 std::max(work.n_tiles * kTileQueries, work.shape.heads_per_kv()));
  const int n_shares = (n_queries + kTiles * kTileQueries - 1) / (kTiles * kTileQueries);
  launch(kernel,
         {.blocks = dim3(static_cast<unsigned>(n_blocks)),
          .threads = kAttendThreads,
          .shared_bytes = shared_bytes},
         stream, work,
         AttendPlan{.scores = Scores(work.shape),
                    .heads_per_kv = work.shape.heads_per_kv(),
                    .n_shares = n_shares,
                    .n_stages = n_stages});
}

template <typename Cells>
void attend_with(const AttentionWork& work, cudaStream_t stream) {
  constexpr int kDim = Cells::kDim;
  if (work.n_tiles == 1) return attend_with<Cells, 1>(work, stream);
  if (work.n_tiles == 2 || kDim > 128) return attend_with<Cells, 2>(work, stream);
  if constexpr (kDim <= 128) attend_with<Cells, kMostTiles>(work, stream);
}

}  // namespace forerun::cuda
