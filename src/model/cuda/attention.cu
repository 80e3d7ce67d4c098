#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "model/cuda/attention.h"
#include "model/cuda/attention_kernel.cuh"

namespace forerun::cuda {
namespace {

int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "prepare attention");
  check(cudaDeviceGetAttribute(&value, attribute, device), "prepare attention");
  return value;
}

int heads_per_kv(const AttentionShape& shape) {
  return shape.n_heads / shape.n_kv_heads;
}

// As many stages as fit, and as many blocks as fit then.
template <int kDim, int kTiles>
void attend_with(const AttentionWork& work, cudaStream_t stream) {
  constexpr int kFixed = static_cast<int>(sizeof(AttendShared<kDim, kTiles>));
  constexpr int kStage = kStageUnits<kDim> * 16;
  constexpr int kReserved = 1024;  // per block
  const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int half = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / 2 - kReserved;
  const auto stages_in = [&](int bytes) { return std::min((bytes - kFixed) / kStage, kMostStages); };
  int n_stages = stages_in(most);
  if (kAttendBlocks<kDim, kTiles> == 2 && stages_in(half) >= 3) n_stages = stages_in(half);
  if (n_stages < (kTiles > 1 ? 2 : 1)) {
    if constexpr (kTiles > 1) return attend_with<kDim, kTiles / 2>(work, stream);
    CHECK(n_stages >= 1);
  }

  const auto kernel = attend_kernel<kDim, kTiles>;
  const size_t shared_bytes = static_cast<size_t>(n_stages * kStage + kFixed);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_bytes)), "prepare attention");
  int n_blocks = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, kernel, kAttendThreads, shared_bytes), "prepare attention");
  CHECK(n_blocks > 0);
  n_blocks *= device_attribute(cudaDevAttrMultiProcessorCount);
  const int n_queries = std::min(work.n_rows * heads_per_kv(work.shape), kItemQueries);
  const int n_shares = (n_queries + kTiles * 16 - 1) / (kTiles * 16);
  launch(kernel,
         {.blocks = dim3(static_cast<unsigned>(n_blocks)),
          .threads = kAttendThreads,
          .shared_bytes = shared_bytes},
         stream, work,
         AttendPlan{.scores = Scores(work.shape),
                    .heads_per_kv = heads_per_kv(work.shape),
                    .n_shares = n_shares,
                    .n_stages = n_stages});
}

template <int kDim>
void attend_with(const AttentionWork& work, cudaStream_t stream) {
  const int n_queries = work.n_rows * heads_per_kv(work.shape);
  if (n_queries <= 16) return attend_with<kDim, 1>(work, stream);
  if (n_queries <= 32 || kDim > 128) return attend_with<kDim, 2>(work, stream);
  if constexpr (kDim <= 128) attend_with<kDim, 4>(work, stream);
}

}  // namespace

bool attention_supports(const AttentionShape& shape) {
  constexpr int kHeadDims[] = {64, 80, 96, 112, 128, 256};
  return std::find(std::begin(kHeadDims), std::end(kHeadDims), shape.head_dim) != std::end(kHeadDims) &&
         shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0 &&
         heads_per_kv(shape) <= kItemQueries;
}

void attend(const AttentionWork& work, cudaStream_t stream) {
  CHECK(attention_supports(work.shape));
  switch (work.shape.head_dim) {
    case 64: return attend_with<64>(work, stream);
    case 80: return attend_with<80>(work, stream);
    case 96: return attend_with<96>(work, stream);
    case 112: return attend_with<112>(work, stream);
    case 128: return attend_with<128>(work, stream);
    case 256: return attend_with<256>(work, stream);
  }
}

void merge(const AttentionWork& work, const Operand& x, cudaStream_t stream) {
  const int n_tile = merge_tile(work.shape.head_dim);
  const int shared_bytes = n_tile * (work.shape.head_dim + 2) * static_cast<int>(sizeof(float));
  launch(merge_kernel,
         {.blocks = dim3(static_cast<unsigned>(work.shape.n_heads), static_cast<unsigned>(work.n_rows)),
          .threads = kMergeThreads,
          .shared_bytes = static_cast<size_t>(shared_bytes)},
         stream, work, x, n_tile);
}

}  // namespace forerun::cuda
