// The kernel that computes chunks of attention: scores, their softmax, and the weighted sum of values.
//
// Numbers of tiles and ways of cutting must agree bit for bit, so it is written with intrinsics that the
// compiler does not contract.
#pragma once

#include "model/cuda/attention_loader.cuh"

namespace forerun::cuda {

// One block per multiprocessor has more room for stages, two hide each other's barriers.
template <int kDim, int kTiles>
constexpr int kAttendBlocks = kTiles == 1 && kDim <= 128 ? 2 : 1;

template <int kDim, int kTiles>
struct AttendShared : LoadedUnits<kDim, kTiles, 2> {
  uint4 weights[kTiles * 16 * WeightTile::kStride];
  float maxima[kAttendWarps][kTiles * 16];
};

template <typename Cells, int kTiles>  // kTiles: of 16 queries
__global__ void __launch_bounds__(kAttendThreads, (kAttendBlocks<Cells::kDim, kTiles>))
    attend_kernel(const __grid_constant__ AttentionWork work, const __grid_constant__ AttendPlan plan) {
  constexpr int kDim = Cells::kDim;
  using Rows = typename Cells::Rows;
  // Tiles of 8 columns of values per warp.
  constexpr int kColumns = kDim <= 64 ? 1 : kDim <= 128 ? 2 : 4;
  extern __shared__ __align__(128) uint4 ring[];
  uint4* tile = ring + plan.n_stages * Cells::kStageUnits;
  using Shared = AttendShared<kDim, kTiles>;
  auto& shared = *reinterpret_cast<Shared*>(tile + Cells::kTileUnits);

  const Lane at;
  const int warp = at.warp, g = at.g, t = at.t, mi = at.mi, mr = at.mr;
  Loader<Cells, Shared> loader(work, plan, ring, shared);
  loader.begin();
  StagesInOrder stages(ring, shared.ready, Cells::kStageUnits, plan.n_stages);
  for (int ordinal = 0; loader.has(ordinal); ++ordinal) {
    const int buffer = ordinal % Shared::kUnitsAhead;
    const Unit& unit = shared.units[buffer];
    Running group_softmax[kTiles][2], total_softmax[kTiles][2];
    float group[kTiles][kColumns][4] = {}, total[kTiles][kColumns][4] = {};

    for (int chunk = unit.first_chunk; chunk < unit.end_chunk; ++chunk) {
      // Scores: this warp takes 16 of the positions.
      float s[kTiles][2][4] = {};
      Cells::multiply_keys(stages.next(), unit.kv_head, shared.q[buffer], s);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int query = m * 16 + h * 8 + g;
          const int position = chunk * kChunk + warp * 16 + t * 2;
          const int first = shared.seen[buffer][query].first, end = shared.seen[buffer][query].end;
          float largest = -INFINITY;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int p = position + i / 2 * 8 + i % 2;
            float& score = s[m][i / 2][h * 2 + i % 2];
            score = p >= first && p < end ? plan.scores.of(score) : -INFINITY;
            largest = fmaxf(largest, score);
          }
          largest = max_over_lanes<4>(largest);
          if (t == 0) shared.maxima[warp][query] = largest;
        }
      }
      __syncthreads();
      // All are done with these keys and the values before them: their stages are free.
      loader.load_until(stages.most_issued(), ordinal);

      // Weights, to shared memory as F16.
      float chunk_max[kTiles][2];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int query = m * 16 + h * 8 + g;
          float largest = shared.maxima[0][query];
#pragma unroll
          for (int w = 1; w < kAttendWarps; ++w) largest = fmaxf(largest, shared.maxima[w][query]);
          if (largest == -INFINITY) largest = 0.0f;  // nothing is seen: all weights become 0
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            reinterpret_cast<__half2*>(shared.weights + WeightTile::at(query, warp * 2 + j))[t] =
                two_weights(s[m][j][h * 2], s[m][j][h * 2 + 1], largest);
          }
          chunk_max[m][h] = largest;
        }
      }

      // Values: this warp takes 8 * kColumns of the columns.
      float o[kTiles][kColumns][4] = {}, sums[kTiles][4] = {};
      const uint4* stage = stages.next();
#pragma unroll
      for (int part = 0; part < kChunk / Cells::kTileRows; ++part) {
        if (part > 0) __syncthreads();  // all are done with the part before
        const uint4* values = Cells::values(stage, unit.kv_head, tile, part);
        __syncthreads();
        if (warp * kColumns >= Rows::kUnits) continue;
        uint32_t two_steps[4];  // of values, where this warp has one tile of columns
#pragma unroll
        for (int step = 0; step < Cells::kTileRows / 16; ++step) {
          uint32_t b[kColumns][2];
          if constexpr (kColumns == 1) {
            if (step % 2 == 0) {
              ptx::load_matrices_transposed(two_steps, values + Rows::at(step * 16 + mi * 8 + mr, warp));
            }
            b[0][0] = two_steps[step % 2 * 2];
            b[0][1] = two_steps[step % 2 * 2 + 1];
          } else {
#pragma unroll
            for (int j = 0; j < kColumns; j += 2) {
              uint32_t r[4];
              ptx::load_matrices_transposed(
                  r, values + Rows::at(step * 16 + mi % 2 * 8 + mr, warp * kColumns + j + mi / 2));
              b[j][0] = r[0];
              b[j][1] = r[1];
              b[j + 1][0] = r[2];
              b[j + 1][1] = r[3];
            }
          }
          const int weight_unit = (part * (Cells::kTileRows / 16) + step) * 2 + mi / 2;
#pragma unroll
          for (int m = 0; m < kTiles; ++m) {
            uint32_t p[4];
            ptx::load_matrices(p,
                               shared.weights + WeightTile::at(m * 16 + mi % 2 * 8 + mr, weight_unit));
            add_weights(sums[m], p);
#pragma unroll
            for (int j = 0; j < kColumns; ++j) ptx::mma_f16(o[m][j], p, b[j][0], b[j][1]);
          }
        }
      }

      // The chunk joins its group; the group, when it ends, what came before it.
      const bool closes = (chunk + 1) % kGroup == 0 || chunk + 1 == unit.end_chunk;
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const Joint joint = group_softmax[m][h].join(chunk_max[m][h], sums[m][h * 2]);
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
#pragma unroll
            for (int i = h * 2; i < h * 2 + 2; ++i)
              group[m][j][i] = joint.value(group[m][j][i], o[m][j][i]);
          }
          if (!closes) continue;
          const Joint all = total_softmax[m][h].join(group_softmax[m][h].max, group_softmax[m][h].sum);
          group_softmax[m][h] = {};
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
#pragma unroll
            for (int i = h * 2; i < h * 2 + 2; ++i) {
              total[m][j][i] = all.value(total[m][j][i], group[m][j][i]);
            }
          }
        }
      }
      if (plan.n_stages == 1 && chunk + 1 < unit.end_chunk) {
        __syncthreads();
        loader.load_until(stages.most_issued(), ordinal);
      }
    }

#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int query = m * 16 + h * 8 + g;
        const Running& softmax = total_softmax[m][h];
        if (query >= unit.n_queries || softmax.sum == 0.0f) continue;
        float* to =
            partial_of<Cells>(work, plan, unit, shared.seen[buffer][query], query, shared.item_chunks);
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          if (warp * kColumns + j >= Rows::kUnits) continue;
          *reinterpret_cast<float2*>(to + (warp * kColumns + j) * 8 + t * 2) =
              make_float2(total[m][j][h * 2], total[m][j][h * 2 + 1]);
        }
        if (warp == 0 && t == 0) {
          *reinterpret_cast<float2*>(to + kDim) = make_float2(softmax.max, softmax.sum);
        }
      }
    }
    if (plan.n_stages == 1) {
      __syncthreads();
      loader.load_until(stages.most_issued(), ordinal);
      __syncthreads();
    }
  }
}

}  // namespace forerun::cuda
