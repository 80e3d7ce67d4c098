#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "model/cuda/attention.h"
#include "model/cuda/attention_launch.cuh"
#include "model/cuda/attention_merge.cuh"

namespace forerun::cuda {

bool attention_supports(const AttentionShape& shape, ggml_type cache_type) {
  constexpr int kHeadDims[] = {64, 80, 96, 112, 128, 256};
  if (std::find(std::begin(kHeadDims), std::end(kHeadDims), shape.head_dim) == std::end(kHeadDims))
    return false;
  if (shape.n_kv_heads <= 0 || shape.n_heads % shape.n_kv_heads != 0) return false;
  if (shape.heads_per_kv() > kItemQueries) return false;
  if (cache_type == GGML_TYPE_F16) return true;
  // Whole blocks to a head, and rows that begin where copies can.
  return cache_type == GGML_TYPE_Q8_0 && shape.head_dim % kQ8Numbers == 0 &&
         cache_bytes(cache_type, shape.head_dim) * shape.n_kv_heads % 4 == 0;
}

bool attention_has_wide(const AttentionShape& shape, ggml_type cache_type) {
  return cache_type == GGML_TYPE_F16 && shape.head_dim <= kWideHeadDim;
}

void attend(const AttentionWork& work, cudaStream_t stream) {
  CHECK(attention_supports(work.shape, work.cache_type));
  if (work.cache_type == GGML_TYPE_Q8_0) return attend_q8_0(work, stream);
  attend_f16(work, stream);
}

void merge(const AttentionWork& work, const Operand& x, cudaStream_t stream) {
  if (work.n_rows > kRowsOfFew) {
    const auto n_blocks = static_cast<unsigned>((x.n_inputs / 2 + kMergeThreads - 1) / kMergeThreads);
    return launch(
        merge_many_kernel,
        {.blocks = dim3(n_blocks, static_cast<unsigned>(work.n_rows)), .threads = kMergeThreads}, stream,
        work, x);
  }
  const int n_tile = merge_tile(work.shape.head_dim);
  const int shared_bytes = n_tile * (work.shape.head_dim + 2) * static_cast<int>(sizeof(float));
  launch(merge_kernel,
         {.blocks = dim3(static_cast<unsigned>(work.shape.n_heads), static_cast<unsigned>(work.n_rows)),
          .threads = kMergeThreads,
          .shared_bytes = static_cast<size_t>(shared_bytes)},
         stream, work, x, n_tile);
}

}  // namespace forerun::cuda
