#include <cfloat>
#include <cstdint>

#include "model/cuda/best_logits.h"
#include "model/cuda/lanes.cuh"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"

namespace forerun::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kUnitsAtOnce = 8;  // of a block, a warp each
constexpr int kHeld = 8;         // logits of a thread
// Logits that may reach the bound before it is raised. A power of two.
constexpr int kMostFound = 4096;
static_assert(kMostFound >= static_cast<int>(kBestLogits));

// NaN as -infinity, +infinity as the largest finite number (sampling/vocab_ops.h).
__device__ __forceinline__ float clean(float x) {
  return x >= -FLT_MAX ? fminf(x, FLT_MAX) : -INFINITY;
}
// x - max, as far as its exponential matters.
__device__ __forceinline__ float below_max(float x, float max) {
  return fmaxf(x - max, -88.0f);
}

// A lane's next logits, from `i` on; -infinity beyond the end.
__device__ __forceinline__ void hold(const float* logits, int i, int end, float (&x)[kHeld]) {
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    x[j] = i + j * kWarp < end ? __ldcg(logits + i + j * kWarp) : -INFINITY;
  }
}

// The sums as of another largest logit, which is no smaller.
__device__ __forceinline__ LogitSums rebased(const LogitSums& sums, float max) {
  if (sums.max == -INFINITY) return {.max = max, .total = 0.0f, .weighted = 0.0f};
  const float below = below_max(sums.max, max), factor = expf(below);
  return {.max = max,
          .total = factor * sums.total,
          .weighted = factor * (sums.weighted - below * sums.total)};
}

struct SumsWork {
  const float* logits;
  RowsShape shape;
  Units units;
  LogitSums* sums;
};
__global__ void __launch_bounds__(kUnitsAtOnce* kWarp)
    sum_units_kernel(const __grid_constant__ SumsWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int unit = static_cast<int>(blockIdx.x * kUnitsAtOnce + threadIdx.x / kWarp);
  if (unit >= work.units.n) return;
  const auto row = static_cast<int64_t>(blockIdx.y);
  const float* logits = work.logits + row * work.shape.n;
  const int first = unit * work.units.size, end = min(first + work.units.size, work.shape.n);
  LogitSums sums{.max = -INFINITY, .total = 0.0f, .weighted = 0.0f};  // a lane's, with the warp's max
  for (int start = first + lane; start - lane < end; start += kHeld * kWarp) {
    float x[kHeld];
    hold(logits, start, end, x);
    float max = sums.max;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      x[j] = clean(x[j]);
      max = fmaxf(max, x[j]);
    }
    max = max_over_lanes(max);
    if (max == -INFINITY) continue;
    sums = rebased(sums, max);
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      if (x[j] == -INFINITY) continue;
      const float below = below_max(x[j], max), e = expf(below);
      sums.total += e;
      sums.weighted -= below * e;
    }
  }
  const float total = sum_over_lanes(sums.total), weighted = sum_over_lanes(sums.weighted);
  if (lane > 0) return;
  work.sums[row * work.units.n + unit] = {.max = sums.max, .total = total, .weighted = weighted};
}

// Ordered as logits are; 0 for what no token can be drawn with.
__device__ __forceinline__ uint32_t key_of(float x) {
  if (!(x > -INFINITY)) return 0;
  const uint32_t bits = __float_as_uint(__fadd_rn(x, 0.0f));  // one zero instead of two
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
// Ordered as ScoredTokens are, the best being the largest: no two tokens tie.
__device__ __forceinline__ uint64_t key_of(float x, int token) {
  return uint64_t{key_of(x)} << 32 | ~static_cast<uint32_t>(token);
}
__device__ __forceinline__ int token_of(uint64_t key) {
  return static_cast<int>(~static_cast<uint32_t>(key));
}

// What the threads of a block share.
struct SelectMemory {
  uint64_t found[kMostFound];
  int listed[kMostUnits];  // units
  int n_listed, n_found;
  float max[kWarp];  // of the block's warps
  double total[kWarp], weighted[kWarp];
};
static_assert(kMostUnits == kWarp * kWarp);

struct SelectWork {
  const float* logits;
  const LogitSums* sums;
  RowsShape shape;
  Units units;
  BestOfRow* best;
};

// The sums over all units, a thread's being `mine`. Thread 0 gets them.
__device__ __forceinline__ SoftmaxSums add_up(const LogitSums& mine, SelectMemory& memory) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const float max_of_warp = max_over_lanes(mine.max);
  if (lane == 0) memory.max[warp] = max_of_warp;
  __syncthreads();
  const float max = max_over_lanes(memory.max[lane]);
  const LogitSums sums = rebased(mine, max);
  double total = sum_over_lanes(static_cast<double>(sums.total));
  double weighted = sum_over_lanes(static_cast<double>(sums.weighted));
  if (lane == 0) {
    memory.total[warp] = total;
    memory.weighted[warp] = weighted;
  }
  __syncthreads();
  SoftmaxSums all;
  if (warp > 0) return all;
  total = sum_over_lanes(memory.total[lane]);
  weighted = sum_over_lanes(memory.weighted[lane]);
  all.max = max;
  all.total = total;
  all.entropy = total > 0 ? log(total) + weighted / total : 0.0;
  return all;
}

// The largest key that so many threads reach with theirs; 0: there is none.
__device__ __forceinline__ uint32_t reached_by(int n, uint32_t key) {
  uint32_t bound = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t higher = bound | 1u << bit;
    if (__syncthreads_count(key >= higher) >= n) bound = higher;
  }
  return bound;
}

// f(key) for the logits of all units that are listed, a warp to a unit. (What lies beyond a unit's end
// has a key below any bound.)
template <typename F>
__device__ __forceinline__ void for_each_listed(const float* logits, const SelectWork& work,
                                                const SelectMemory& memory, F f) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int j = static_cast<int>(threadIdx.x) / kWarp; j < memory.n_listed; j += kWarp) {
    const int first = memory.listed[j] * work.units.size;
    const int end = min(first + work.units.size, work.shape.n);
    for (int i = first + lane; i < end; i += kHeld * kWarp) {
      float x[kHeld];
      hold(logits, i, end, x);
#pragma unroll
      for (int k = 0; k < kHeld; ++k) f(key_of(x[k], i + k * kWarp));
    }
  }
}

// Makes memory.found those that reach the bound, as far as there is room, and n_found their number.
__device__ __forceinline__ void find(const float* logits, const SelectWork& work, uint64_t bound,
                                     SelectMemory& memory) {
  if (threadIdx.x == 0) memory.n_found = 0;
  __syncthreads();
  for_each_listed(logits, work, memory, [&](uint64_t key) {
    if (key < bound) return;
    const int at = atomicAdd(&memory.n_found, 1);
    if (at < kMostFound) memory.found[at] = key;
  });
  __syncthreads();
}

// The bound that exactly as many reach as are wanted: for rows in which thousands tie, or lie in order.
__device__ __forceinline__ uint64_t raised_bound(const float* logits, const SelectWork& work,
                                                 SelectMemory& memory) {
  uint64_t bound = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t higher = bound | uint64_t{1} << bit;
    int n = 0;
    for_each_listed(logits, work, memory, [&](uint64_t key) { n += key >= higher ? 1 : 0; });
    if (threadIdx.x == 0) memory.n_found = 0;
    __syncthreads();
    if (n > 0) atomicAdd(&memory.n_found, n);
    __syncthreads();
    if (memory.n_found >= static_cast<int>(kBestLogits)) bound = higher;
    __syncthreads();
  }
  return bound;
}

// From the largest on (bitonic).
__device__ __forceinline__ void sort_found(int n, uint64_t* found) {
  int n_sorted = 2;
  while (n_sorted < n) n_sorted *= 2;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = n + thread; i < n_sorted; i += kMostUnits) found[i] = 0;
  for (int run = 2; run <= n_sorted; run *= 2) {
    for (int apart = run / 2; apart > 0; apart /= 2) {
      __syncthreads();
      for (int pair = thread; pair < n_sorted / 2; pair += kMostUnits) {
        const int i = 2 * pair - (pair & (apart - 1));
        const uint64_t a = found[i], b = found[i + apart];
        const bool falls = (i & run) == 0;
        if ((a < b) != falls) continue;
        found[i] = b;
        found[i + apart] = a;
      }
    }
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kMostUnits, 1) select_kernel(const __grid_constant__ SelectWork work) {
  __shared__ SelectMemory memory;
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const float* logits = work.logits + static_cast<int64_t>(row) * work.shape.n;
  BestOfRow& best = work.best[row];

  LogitSums mine{.max = -INFINITY, .total = 0.0f, .weighted = 0.0f};
  if (thread < work.units.n) {
    const LogitSums* sums = work.sums + static_cast<int64_t>(row) * work.units.n + thread;
    mine = {
        .max = __ldcg(&sums->max), .total = __ldcg(&sums->total), .weighted = __ldcg(&sums->weighted)};
  }
  if (thread == 0) memory.n_listed = 0;
  const SoftmaxSums sums = add_up(mine, memory);

  // Units have a logit above -infinity, or they are not listed.
  const uint32_t key = key_of(mine.max);
  const uint32_t bound = max(reached_by(static_cast<int>(kBestLogits), key), 1u);
  if (key >= bound) memory.listed[atomicAdd(&memory.n_listed, 1)] = thread;
  __syncthreads();
  find(logits, work, uint64_t{bound} << 32, memory);
  int n_found = memory.n_found;
  if (n_found > kMostFound) {
    __syncthreads();  // all have read it
    find(logits, work, raised_bound(logits, work, memory), memory);
    n_found = memory.n_found;
  }
  sort_found(n_found, memory.found);

  const int n = min(n_found, static_cast<int>(kBestLogits));
  for (int i = thread; i < static_cast<int>(kBestLogits); i += kMostUnits) {
    const int token = i < n ? token_of(memory.found[i]) : 0;
    best.tokens[i] = {.logit = i < n ? __ldcg(logits + token) : -INFINITY, .token = TokenId{token}};
  }
  if (thread == 0) {
    best.sums = sums;
    best.n = n;
  }
}

}  // namespace

Units units_of(int n_vocab) {
  const int each = (n_vocab + kMostUnits - 1) / kMostUnits;
  const int size = (each + kWarp - 1) / kWarp * kWarp;
  return {.size = size, .n = (n_vocab + size - 1) / size};
}

void sum_units(const float* logits, RowsShape shape, LogitSums* sums, cudaStream_t stream) {
  const Units units = units_of(shape.n);
  const auto n_blocks = static_cast<unsigned>((units.n + kUnitsAtOnce - 1) / kUnitsAtOnce);
  launch(
      sum_units_kernel,
      {.blocks = dim3(n_blocks, static_cast<unsigned>(shape.n_rows)), .threads = kUnitsAtOnce * kWarp},
      stream, SumsWork{.logits = logits, .shape = shape, .units = units, .sums = sums});
}

void select_best(const float* logits, const LogitSums* sums, RowsShape shape, BestOfRow* best,
                 cudaStream_t stream) {
  const SelectWork work{
      .logits = logits, .sums = sums, .shape = shape, .units = units_of(shape.n), .best = best};
  launch(select_kernel, {.blocks = dim3(static_cast<unsigned>(shape.n_rows)), .threads = kMostUnits},
         stream, work);
}

}  // namespace forerun::cuda
