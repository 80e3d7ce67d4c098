// Merges what items have left of a row.
#pragma once

#include "model/cuda/attention_softmax.cuh"
#include "model/cuda/halves.cuh"

namespace forerun::cuda {

constexpr int kMergeThreads = 256;
constexpr int kRowsOfFew = 4;   // that are merged with all their items at once
constexpr int kItemsAhead = 4;  // that are asked for before they are joined, of more rows
inline int merge_tile(int head_dim) {
  return head_dim <= 128 ? 64 : 32;
}  // items at a time

// A row's items, joined in their order.
template <int kValues>
struct Merged {
  Running group_softmax, total_softmax;
  float group[kValues] = {}, total[kValues] = {};

  // `closes`: the item is the last of its group of chunks.
  __device__ __forceinline__ void add(float2 softmax, const float (&values)[kValues], bool closes) {
    const Joint joint = group_softmax.join(softmax.x, softmax.y);
#pragma unroll
    for (int i = 0; i < kValues; ++i) group[i] = joint.value(group[i], values[i]);
    if (!closes) return;
    const Joint all = total_softmax.join(group_softmax.max, group_softmax.sum);
    group_softmax = {};
#pragma unroll
    for (int i = 0; i < kValues; ++i) total[i] = all.value(total[i], group[i]);
  }
  __device__ __forceinline__ float result(int i) const {
    return total_softmax.sum == 0.0f ? 0.0f : __fdiv_rn(total[i], total_softmax.sum);
  }
};

// Where a row's items are.
struct RowItems {
  int first_chunk, n, chunks;  // chunks: of an item
  int partial_start;

  __device__ __forceinline__ RowItems(const AttentionWork& work, int row) {
    chunks = __ldcg(work.item_chunks);
    SeenCells seen{};
    seen.first = __ldcg(&work.rows[row].first);
    seen.end = __ldcg(&work.rows[row].end);
    first_chunk = seen.first / kChunk;
    n = n_row_items(seen, chunks);
    partial_start = __ldcg(work.partial_start + row);
  }
  __device__ __forceinline__ bool closes(int item) const {
    return chunks > 1 || (first_chunk + item + 1) % kGroup == 0 || item + 1 == n;
  }
};

// For few rows. Block: head, row. Thread: one value.
__global__ void __launch_bounds__(kMergeThreads)
    merge_kernel(const __grid_constant__ AttentionWork work, const __grid_constant__ Operand x,
                 int n_tile) {
  extern __shared__ __align__(16) float2 tile[];  // [item][head_dim / 2 + 1]
  ptx::launch_dependents();
  const int head = static_cast<int>(blockIdx.x), row = static_cast<int>(blockIdx.y);
  const int head_dim = work.shape.head_dim, n_heads = work.shape.n_heads;
  const int pairs = head_dim / 2 + 1;
  const RowItems items(work, row);
  const auto* partials = reinterpret_cast<const float2*>(work.partials) +
                         (static_cast<int64_t>(items.partial_start) * n_heads + head) * pairs;
  const int d = static_cast<int>(threadIdx.x);
  ptx::wait_dependencies();  // all before is an input of the pass

  Merged<1> merged;
  for (int begin = 0; begin < items.n; begin += n_tile) {
    const int n = min(n_tile, items.n - begin);
    for (int i = d; i < n * pairs; i += kMergeThreads) {
      const int item = i / pairs;
      ptx::copy_8(tile + i,
                  partials + static_cast<int64_t>(begin + item) * n_heads * pairs + (i - item * pairs));
    }
    ptx::wait_copies();
    __syncthreads();
    if (d < head_dim) {
      for (int i = 0; i < n; ++i) {
        const float value[1] = {reinterpret_cast<const float*>(tile + i * pairs)[d]};
        merged.add(tile[i * pairs + pairs - 1], value, items.closes(begin + i));
      }
    }
    __syncthreads();
  }
  if (d < head_dim) {
    const int64_t k = static_cast<int64_t>(head) * head_dim + d;
    x.data[x.index(k, row)] = saturated_half(merged.result(0));
  }
  if (head != n_heads - 1) return;
  for (int64_t k = static_cast<int64_t>(n_heads) * head_dim + d; k < x.n_inputs; k += kMergeThreads) {
    x.data[x.index(k, row)] = __float2half_rn(0.0f);
  }
}

// For many rows. Block: some values of a row. Thread: two of them.
__global__ void __launch_bounds__(kMergeThreads)
    merge_many_kernel(const __grid_constant__ AttentionWork work, const __grid_constant__ Operand x) {
  ptx::launch_dependents();
  const int row = static_cast<int>(blockIdx.y);
  const int k = 2 * static_cast<int>(blockIdx.x * kMergeThreads + threadIdx.x);
  if (k >= x.n_inputs) return;
  const int head_dim = work.shape.head_dim, n_heads = work.shape.n_heads;
  const int head = k / head_dim, pairs = head_dim / 2 + 1;
  const RowItems items(work, row);
  ptx::wait_dependencies();  // all before is an input of the pass

  Merged<2> merged;
  if (head < n_heads) {
    const auto* of_head = reinterpret_cast<const float2*>(work.partials) +
                          (static_cast<int64_t>(items.partial_start) * n_heads + head) * pairs;
    const int64_t item_pairs = int64_t{n_heads} * pairs;
    for (int first = 0; first < items.n; first += kItemsAhead, of_head += kItemsAhead * item_pairs) {
      float2 values[kItemsAhead], softmax[kItemsAhead];
#pragma unroll
      for (int i = 0; i < kItemsAhead; ++i) {
        if (first + i >= items.n) break;
        values[i] = __ldcg(of_head + i * item_pairs + (k - head * head_dim) / 2);
        softmax[i] = __ldcg(of_head + i * item_pairs + pairs - 1);
      }
#pragma unroll
      for (int i = 0; i < kItemsAhead; ++i) {
        if (first + i >= items.n) break;
        const float two[2] = {values[i].x, values[i].y};
        merged.add(softmax[i], two, items.closes(first + i));
      }
    }
  }
  *reinterpret_cast<__half2*>(x.data + x.index(k, row)) =
      saturated_halves(merged.result(0), merged.result(1));
}

}  // namespace forerun::cuda
