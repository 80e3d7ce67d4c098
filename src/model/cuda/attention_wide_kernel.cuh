// The chunk kernel of attention for many queries that see the same cells: a warp has 16 of them to
// itself, for all positions and all columns, so that warps wait for each other only where keys and
// values are replaced.
//
// Its bits are attention_kernel.cuh's: the same products of the tensor cores in the same order, and the
// same softmax, from the same values, however they are spread over threads.
#pragma once

#include "model/cuda/attention_loader.cuh"

namespace forerun::cuda {

constexpr int kWideTiles = kAttendWarps;  // of 16 queries

template <int kDim>
struct WideAttendShared : LoadedUnits<kDim, kWideTiles, 1> {
  // Of a warp's queries, behind the groups of chunks so far.
  float4 totals[kAttendWarps][kDim / 8][32];
};

// What a thread's two queries see.
struct TwoSeen {
  int first[2], end[2];
  int first_of_warp, end_of_warp;                // that some query of the warp sees
  int first_of_all_queries, end_of_all_queries;  // that all see

  __device__ __forceinline__ TwoSeen(const SeenByQuery* seen, int query) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      first[h] = seen[query + h * 8].first;
      end[h] = seen[query + h * 8].end;
    }
    first_of_warp = __reduce_min_sync(~0u, min(first[0], first[1]));
    end_of_warp = __reduce_max_sync(~0u, max(end[0], end[1]));
    first_of_all_queries = __reduce_max_sync(~0u, max(first[0], first[1]));
    end_of_all_queries = __reduce_min_sync(~0u, min(end[0], end[1]));
  }
  __device__ __forceinline__ bool sees_any(int begin) const {
    return begin < end_of_warp && begin + kChunk > first_of_warp;
  }
  __device__ __forceinline__ bool all_see_all(int begin) const {
    return begin >= first_of_all_queries && begin + kChunk <= end_of_all_queries;
  }
};

// The weights of a chunk as operands of the tensor cores, 16 positions each, and the largest score of
// both queries. s: scores [position / 8].
__device__ __forceinline__ void weigh(float (&s)[kChunk / 8][4], const Scores& scores,
                                      const TwoSeen& seen, int begin,
                                      uint32_t (&weights)[kChunk / 16][4], float (&largest)[2]) {
  // What all of a warp take or leave is asked once, not for each score.
  const auto for_each_score = [&](auto change) {
    const int first_position = begin + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int j = 0; j < kChunk / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[j][i] = change(s[j][i], first_position + j * 8 + i % 2, i / 2);
    }
  };
  for_each_score([&](float product, int, int) { return scores.scaled(product); });
  if (scores.is_capped()) for_each_score([&](float x, int, int) { return scores.capped(x); });
  if (!seen.all_see_all(begin)) {
    for_each_score(
        [&](float x, int p, int h) { return p >= seen.first[h] && p < seen.end[h] ? x : -INFINITY; });
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = -INFINITY;
#pragma unroll
    for (int j = 0; j < kChunk / 8; ++j) most = fmaxf(most, fmaxf(s[j][h * 2], s[j][h * 2 + 1]));
    most = max_over_lanes<4>(most);
    largest[h] = most == -INFINITY ? 0.0f : most;  // nothing is seen: all weights become 0
  }
#pragma unroll
  for (int j = 0; j < kChunk / 8; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      weights[j / 2][j % 2 * 2 + h] = bits(two_weights(s[j][h * 2], s[j][h * 2 + 1], largest[h]));
    }
  }
}

template <typename Cells>
__global__ void __launch_bounds__(kAttendThreads, 1)
    attend_wide_kernel(const __grid_constant__ AttentionWork work,
                       const __grid_constant__ AttendPlan plan) {
  constexpr int kDim = Cells::kDim, kColumns = kDim / 8;
  using Rows = typename Cells::Rows;
  using Shared = WideAttendShared<kDim>;
  extern __shared__ __align__(128) uint4 ring[];
  auto& shared = *reinterpret_cast<Shared*>(ring + plan.n_stages * Cells::kStageUnits);

  const Lane at;
  Loader<Cells, Shared> loader(work, plan, ring, shared);
  loader.begin();
  StagesInOrder stages(ring, shared.ready, Cells::kStageUnits, plan.n_stages);

  const int first_query = at.warp * 16;
  float4(&totals)[kColumns][32] = shared.totals[at.warp];
  for (int ordinal = 0; loader.has(ordinal); ++ordinal) {
    const uint4* keys = stages.next();  // with which queries have come, and what they see
    const Unit unit = shared.units[0];
    const bool works = first_query < unit.n_queries;
    const TwoSeen seen(shared.seen[0], first_query + at.g);
    Running group_softmax[2], total_softmax[2];
    float group[kColumns][4] = {};
    bool has_totals = false;

    for (int chunk = unit.first_chunk; chunk < unit.end_chunk; ++chunk) {
      const int begin = chunk * kChunk;
      const bool takes_part = works && seen.sees_any(begin);
      if (chunk > unit.first_chunk) keys = stages.next();
      uint32_t weights[kChunk / 16][4] = {};
      float largest[2] = {};
      float s[kChunk / 8][4] = {};
      if (takes_part) Cells::multiply_all_keys(keys, shared.q[0], first_query, s);
      __syncthreads();
      // All are done with these keys and the values before them: their stages are free.
      loader.load_until(stages.most_issued(), ordinal);
      if (takes_part) weigh(s, plan.scores, seen, begin, weights, largest);

      const uint4* values = stages.next();
      float o[kColumns][4] = {}, sums[4] = {};
      if (takes_part) {
#pragma unroll
        for (int step = 0; step < kChunk / 16; ++step) {
          add_weights(sums, weights[step]);
#pragma unroll
          for (int j = 0; j < kColumns; j += 2) {
            uint32_t b[4];
            ptx::load_matrices_transposed(
                b, values + Rows::at(step * 16 + at.mi % 2 * 8 + at.mr, j + at.mi / 2));
            ptx::mma_f16(o[j], weights[step], b[0], b[1]);
            ptx::mma_f16(o[j + 1], weights[step], b[2], b[3]);
          }
        }
      }

      // The chunk joins its group; the group, when it ends, what came before it.
      const bool ends = chunk + 1 == unit.end_chunk, closes = ends || (chunk + 1) % kGroup == 0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const Joint joint = group_softmax[h].join(largest[h], sums[h * 2]);
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
#pragma unroll
          for (int i = h * 2; i < h * 2 + 2; ++i) group[j][i] = joint.value(group[j][i], o[j][i]);
        }
      }
      if (!closes) continue;
      Joint all[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        all[h] = total_softmax[h].join(group_softmax[h].max, group_softmax[h].sum);
        group_softmax[h] = {};
      }
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const float4 total = has_totals ? totals[j][at.lane] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        group[j][0] = all[0].value(total.x, group[j][0]);
        group[j][1] = all[0].value(total.y, group[j][1]);
        group[j][2] = all[1].value(total.z, group[j][2]);
        group[j][3] = all[1].value(total.w, group[j][3]);
        if (!ends) totals[j][at.lane] = make_float4(group[j][0], group[j][1], group[j][2], group[j][3]);
      }
      has_totals = true;
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int query = first_query + h * 8 + at.g;
      const Running& softmax = total_softmax[h];
      if (query >= unit.n_queries || softmax.sum == 0.0f) continue;
      float* to = partial_of<Cells>(work, plan, unit, shared.seen[0][query], query, shared.item_chunks);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        *reinterpret_cast<float2*>(to + j * 8 + at.t * 2) =
            make_float2(group[j][h * 2], group[j][h * 2 + 1]);
      }
      if (at.t == 0) *reinterpret_cast<float2*>(to + kDim) = make_float2(softmax.max, softmax.sum);
    }
    __syncthreads();
    loader.load_until(stages.most_issued(), ordinal + 1);
    __syncthreads();
  }
}

}  // namespace forerun::cuda
