// Which experts the rows of a pass use.
#include <algorithm>

#include "core/check.h"
#include "model/cuda/experts.h"
#include "model/cuda/lanes.cuh"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

constexpr unsigned kAll = ~0u;  // lanes

// --- scores ---

constexpr int kScoreWarps = 4;

__device__ __forceinline__ float product_of_eight(float sum, uint4 x, float4 low, float4 high) {
  const auto pair = [&](uint32_t v, float a, float b) {
    const float2 two = __half22float2(*reinterpret_cast<const __half2*>(&v));
    sum = __fmaf_rn(two.y, b, __fmaf_rn(two.x, a, sum));
  };
  pair(x.x, low.x, low.y);
  pair(x.y, low.z, low.w);
  pair(x.z, high.x, high.y);
  pair(x.w, high.z, high.w);
  return sum;
}

// A warp has kScores scores of kRows rows; a lane every 32nd eight of inputs. How many there are at once
// is a matter of speed.
template <int kScores, int kRows>
__global__ void __launch_bounds__(32 * kScoreWarps)
    scores_kernel(const __grid_constant__ ScoresWork work) {
  const int lane = static_cast<int>(threadIdx.x) % 32, n = work.n_in, n_scores = work.n_scores();
  const int first = static_cast<int>(blockIdx.x * kScoreWarps + threadIdx.x / 32) * kScores;
  ptx::launch_dependents();
  if (first >= n_scores) return;
  const auto is_shared = [&](int score) { return score == work.n_experts; };
  const float* weights[kScores];  // the last one's in place of those that there are not
#pragma unroll
  for (int s = 0; s < kScores; ++s) {
    const int score = min(first + s, n_scores - 1);
    weights[s] = is_shared(score) ? work.shared.weights : work.router.weights + int64_t{score} * n;
    for (int i = lane * 32; i < n; i += 32 * 32) ptx::prefetch(weights[s] + i);
  }
  ptx::wait_dependencies();

  const RowsAtOnce<kRows> rows(static_cast<int>(blockIdx.y) * kRows, work.n_rows);
  float sums[kScores][kRows] = {};
#pragma unroll 4 / kScores
  for (int i = lane * 8; i < n; i += 32 * 8) {
    uint4 x[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      x[r] = __ldcg(reinterpret_cast<const uint4*>(work.x.data + work.x.index(i, rows.at[r])));
    }
#pragma unroll
    for (int s = 0; s < kScores; ++s) {
      const float4 low = load_four(weights[s], i, n), high = load_four(weights[s], i + 4, n);
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[s][r] = product_of_eight(sums[s][r], x[r], low, high);
    }
  }
#pragma unroll
  for (int s = 0; s < kScores; ++s) {
    const int score = first + s;
    const FloatMatrix& matrix = is_shared(score) ? work.shared : work.router;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float y = sum_over_lanes(sums[s][r]);
      if (lane > 0 || score >= n_scores || r >= rows.n) continue;
      if (matrix.scale != nullptr) y = __fmul_rn(y, *matrix.scale);
      if (matrix.bias != nullptr) y = __fadd_rn(y, matrix.bias[is_shared(score) ? 0 : score]);
      work.scores[int64_t{rows.at[r]} * n_scores + score] = y;
    }
  }
}

// --- choice, by a warp for each row ---

constexpr int kWarps = 16, kThreads = 32 * kWarps;

// Softmax of kN numbers of each lane, of which the first `n` of all, lane after lane, count.
template <int kN>
__device__ __forceinline__ void softmax(float (&x)[kN], int n, int lane) {
  float largest = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    if (j * 32 + lane < n) largest = fmaxf(largest, x[j]);
  }
  largest = max_over_lanes(largest);
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    if (j * 32 + lane >= n) continue;
    x[j] = expf(__fsub_rn(x[j], largest));
    sum = __fadd_rn(sum, x[j]);
  }
  sum = sum_over_lanes(sum);
#pragma unroll
  for (int j = 0; j < kN; ++j) x[j] = __fdiv_rn(x[j], sum);
}

struct Candidate {
  float value;  // what it is chosen by
  float share;
  int expert;  // -1: there is none

  // Of equals the first is better.
  __device__ __forceinline__ bool is_better_than(const Candidate& other) const {
    if (expert < 0 || other.expert < 0) return expert >= 0;
    return value > other.value || (value == other.value && expert < other.expert);
  }
};

// The best of what lanes have, in all of them.
__device__ __forceinline__ Candidate best_of_warp(Candidate best) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) {
    const Candidate other{.value = __shfl_xor_sync(kAll, best.value, i),
                          .share = __shfl_xor_sync(kAll, best.share, i),
                          .expert = __shfl_xor_sync(kAll, best.expert, i)};
    if (other.is_better_than(best)) best = other;
  }
  return best;
}

// Leaves the shares of a row's routes, and in their places the experts. Lane l has every 32nd expert
// from l on, and every 32nd route.
template <int kPerLane>
__device__ __forceinline__ void choose(const RoutingWork& work, int row) {
  constexpr int kRoutes = ExpertsConfig::kMostUsed / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int n_experts = work.shape.n_experts, n_used = work.shape.n_used;
  float scores[kPerLane], values[kPerLane];
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const int expert = j * 32 + lane;
    scores[j] = expert < n_experts ? __ldcg(work.scores + int64_t{row} * work.n_scores + expert) : 0.0f;
  }
  if (work.gating == ExpertGating::kSoftmax) softmax(scores, n_experts, lane);
  uint32_t is_left = 0;  // a bit for each expert of the lane
#pragma unroll
  for (int j = 0; j < kPerLane; ++j) {
    const int expert = j * 32 + lane;
    if (expert >= n_experts) continue;
    is_left |= 1u << j;
    if (work.gating == ExpertGating::kSigmoid) {
      scores[j] = __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-scores[j])));
    }
    values[j] = work.preference == nullptr ? scores[j] : __fadd_rn(scores[j], work.preference[expert]);
    if (isnan(values[j])) values[j] = -INFINITY;  // is never better
  }

  float shares[kRoutes] = {};
  int experts[kRoutes] = {};
  for (int rank = 0; rank < n_used; ++rank) {
    Candidate best{.value = 0.0f, .share = 0.0f, .expert = -1};
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      const Candidate candidate{.value = values[j], .share = scores[j], .expert = j * 32 + lane};
      if ((is_left >> j & 1) != 0 && candidate.is_better_than(best)) best = candidate;
    }
    best = best_of_warp(best);
    if (best.expert % 32 == lane) is_left &= ~(1u << best.expert / 32);
#pragma unroll
    for (int j = 0; j < kRoutes; ++j) {
      if (rank == j * 32 + lane) shares[j] = best.share, experts[j] = best.expert;
    }
  }

  if (work.gating == ExpertGating::kSoftmaxOfChosen) softmax(shares, n_used, lane);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kRoutes; ++j) {
    if (j * 32 + lane < n_used) sum = __fadd_rn(sum, shares[j]);
  }
  sum = sum_over_lanes(sum);
  const float factor =
      work.normalises ? __fdiv_rn(work.scale, fmaxf(sum, ExpertsConfig::kLeastSum)) : work.scale;
#pragma unroll
  for (int j = 0; j < kRoutes; ++j) {
    const int rank = j * 32 + lane;
    if (rank >= n_used) continue;
    work.routing.shares[row * n_used + rank] = __fmul_rn(shares[j], factor);
    work.routing.places[row * n_used + rank] = experts[j];
  }
}

// --- items, by one block ---

// As many experts as there may be, each with its number of routes, and its first item.
struct ExpertCounts {
  int n[ExpertsConfig::kMost];
  int first_item[ExpertsConfig::kMost];
};

struct GroupingWork {
  RoutingWork routing;
  int most_items;
  int width;
  bool is_gathered;
};

// By one warp: counts become zeros.
__device__ __forceinline__ void make_items(const GroupingWork& work, ExpertCounts& counts) {
  const int lane = static_cast<int>(threadIdx.x) % 32, n_experts = work.routing.shape.n_experts;
  int n_items = 0;
  for (int first = 0; first < n_experts; first += 32) {
    const int expert = first + lane;
    const int n = expert < n_experts ? (counts.n[expert] + work.width - 1) / work.width : 0;
    int end = n;  // of the expert's items among these
#pragma unroll
    for (int i = 1; i < 32; i *= 2) {
      const int before = __shfl_up_sync(kAll, end, i);
      if (lane >= i) end += before;
    }
    const int n_all = __shfl_sync(kAll, end, 31);
    if (expert < n_experts) {
      counts.first_item[expert] = n_items + end - n;
      counts.n[expert] = 0;
    }
    for (int i = 0; i < n; ++i) work.routing.routing.experts[n_items + end - n + i] = expert;
    n_items += n_all;
  }
}

// Experts in the places of routes become places. Which of an expert's columns a route gets is anyone's
// guess, and decides nothing.
__device__ __forceinline__ void group(const GroupingWork& work, ExpertCounts& counts) {
  const ExpertsShape& shape = work.routing.shape;
  const Routing& routing = work.routing.routing;
  const int thread = static_cast<int>(threadIdx.x), n_threads = static_cast<int>(blockDim.x);
  const int n_routes = shape.n_rows * shape.n_used;
  for (int i = thread; i < shape.n_experts; i += n_threads) counts.n[i] = 0;
  for (int i = thread; i < work.most_items; i += n_threads) routing.experts[i] = -1;
  for (int i = thread; i < work.most_items * work.width; i += n_threads) routing.columns[i] = -1;
  __syncthreads();
  for (int i = thread; i < n_routes; i += n_threads) atomicAdd(&counts.n[routing.places[i]], 1);
  __syncthreads();
  if (thread < 32) make_items(work, counts);
  __syncthreads();
  for (int i = thread; i < n_routes; i += n_threads) {
    const int expert = routing.places[i];
    int item = counts.first_item[expert], column = i / shape.n_used;
    if (work.is_gathered) {
      const int n_before = atomicAdd(&counts.n[expert], 1);
      item += n_before / work.width;
      column = n_before % work.width;
    }
    routing.places[i] = item * work.width + column;
    routing.columns[item * work.width + column] = i;
  }
}

// A single block makes items as well.
template <int kPerLane>
__global__ void __launch_bounds__(kThreads) choose_kernel(const __grid_constant__ GroupingWork work) {
  __shared__ ExpertCounts counts;
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int row = static_cast<int>(blockIdx.x) * kWarps + warp; row < work.routing.shape.n_rows;
       row += static_cast<int>(gridDim.x) * kWarps) {
    choose<kPerLane>(work.routing, row);
  }
  if (gridDim.x > 1) return;
  __syncthreads();
  group(work, counts);
}
__global__ void __launch_bounds__(kThreads) group_kernel(const __grid_constant__ GroupingWork work) {
  __shared__ ExpertCounts counts;
  ptx::launch_dependents();
  ptx::wait_dependencies();
  group(work, counts);
}

template <int kScores, int kRows>
void launch_scores(const ScoresWork& work, cudaStream_t stream) {
  const auto n_blocks = [](int n, int n_of_block) {
    return static_cast<unsigned>((n + n_of_block - 1) / n_of_block);
  };
  launch(scores_kernel<kScores, kRows>,
         {.blocks = dim3(n_blocks(work.n_scores(), kScoreWarps * kScores), n_blocks(work.n_rows, kRows)),
          .threads = 32 * kScoreWarps},
         stream, work);
}

}  // namespace

void score_experts(const ScoresWork& work, cudaStream_t stream) {
  CHECK(work.x.n_inputs >= work.n_in);
  if (work.n_rows == 1) return launch_scores<1, 1>(work, stream);
  if (work.n_rows <= kMaxRows) return launch_scores<1, 4>(work, stream);
  launch_scores<4, 8>(work, stream);
}

void route(const RoutingWork& work, cudaStream_t stream) {
  const ExpertsShape& shape = work.shape;
  CHECK(shape.n_used >= 1 && shape.n_used <= std::min(shape.n_experts, ExpertsConfig::kMostUsed));
  CHECK(shape.n_experts <= ExpertsConfig::kMost);
  const GroupingWork grouping{.routing = work,
                              .most_items = shape.most_items(),
                              .width = shape.width(),
                              .is_gathered = shape.is_gathered()};
  const bool is_one_block = shape.n_rows <= kMaxRows;
  const int n_blocks = is_one_block ? 1 : (shape.n_rows + kWarps - 1) / kWarps;
  constexpr int kFewPerLane = 4;
  launch(shape.n_experts <= 32 * kFewPerLane ? choose_kernel<kFewPerLane>
                                             : choose_kernel<ExpertsConfig::kMost / 32>,
         {.blocks = dim3(static_cast<unsigned>(n_blocks)), .threads = kThreads}, stream, grouping);
  if (is_one_block) return;
  launch(group_kernel, {.blocks = dim3(1), .threads = kThreads}, stream, grouping);
}

}  // namespace forerun::cuda
