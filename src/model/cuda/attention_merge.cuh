// Merges what items have left of a row.
#pragma once

#include "model/cuda/attention_softmax.cuh"
#include "model/cuda/halves.cuh"

namespace forerun::cuda {

constexpr int kMergeThreads = 256;
inline int merge_tile(int head_dim) {
  return head_dim <= 128 ? 64 : 32;
}  // items at a time

// Block: head, row. Thread: one value.
__global__ void __launch_bounds__(kMergeThreads)
    merge_kernel(const __grid_constant__ AttentionWork work, const __grid_constant__ Operand x,
                 int n_tile) {
  extern __shared__ __align__(16) float2 tile[];  // [item][head_dim / 2 + 1]
  ptx::launch_dependents();
  const int head = static_cast<int>(blockIdx.x), row = static_cast<int>(blockIdx.y);
  const int head_dim = work.shape.head_dim, n_heads = work.shape.n_heads;
  const int pairs = head_dim / 2 + 1;
  const int item_chunks = __ldcg(work.item_chunks);
  SeenCells seen{};
  seen.first = __ldcg(&work.rows[row].first);
  seen.end = __ldcg(&work.rows[row].end);
  const int n_items = n_row_items(seen, item_chunks);
  const auto* partials =
      reinterpret_cast<const float2*>(work.partials) +
      (static_cast<int64_t>(__ldcg(work.partial_start + row)) * n_heads + head) * pairs;
  const int d = static_cast<int>(threadIdx.x);
  ptx::wait_dependencies();  // all before is an input of the pass

  Running group_softmax, total_softmax;
  float group = 0.0f, total = 0.0f;
  for (int begin = 0; begin < n_items; begin += n_tile) {
    const int n = min(n_tile, n_items - begin);
    for (int i = d; i < n * pairs; i += kMergeThreads) {
      const int item = i / pairs;
      ptx::copy_8(tile + i,
                  partials + static_cast<int64_t>(begin + item) * n_heads * pairs + (i - item * pairs));
    }
    ptx::wait_copies();
    __syncthreads();
    if (d < head_dim) {
      for (int i = 0; i < n; ++i) {
        const float2 softmax = tile[i * pairs + pairs - 1];
        const float value = reinterpret_cast<const float*>(tile + i * pairs)[d];
        const Joint joint = group_softmax.join(softmax.x, softmax.y);
        group = joint.value(group, value);
        const int chunk = seen.first / kChunk + begin + i;  // where an item is one
        const bool closes = item_chunks > 1 || (chunk + 1) % kGroup == 0 || begin + i + 1 == n_items;
        if (!closes) continue;
        const Joint all = total_softmax.join(group_softmax.max, group_softmax.sum);
        group_softmax = {};
        total = all.value(total, group);
      }
    }
    __syncthreads();
  }
  if (d < head_dim) {
    const float result = total_softmax.sum == 0.0f ? 0.0f : __fdiv_rn(total, total_softmax.sum);
    const int64_t k = static_cast<int64_t>(head) * head_dim + d;
    x.data[x.index(k, row)] = saturated_half(result);
  }
  if (head != n_heads - 1) return;
  for (int64_t k = static_cast<int64_t>(n_heads) * head_dim + d; k < x.n_inputs; k += kMergeThreads) {
    x.data[x.index(k, row)] = __float2half_rn(0.0f);
  }
}

}  // namespace forerun::cuda
