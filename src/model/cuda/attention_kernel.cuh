// The kernels of attention.h.
//
// Work is cut into units: an item, a KV head, and, where an item has more queries than a block takes at
// a time, a share of them. A block takes every gridDim-th unit. Keys and values of chunks stream through
// a ring of stages, one stage for the keys or the values of a chunk, and go on streaming from one unit
// into the next; all threads copy, 16 bytes at a time, and arrive at the stage's barrier.
//
// Whatever must agree bit for bit between kernels (numbers of tiles, ways of cutting) is written with
// intrinsics that the compiler does not contract.
#pragma once

#include "model/cuda/attention.h"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"

namespace forerun::cuda {

constexpr int kAttendThreads = 256;
constexpr int kAttendWarps = kAttendThreads / 32;
constexpr int kMostStages = 6;
constexpr int kUnitsAhead = 2;  // units that have begun to be loaded, with the one being computed
constexpr float kLog2E = 1.44269504088896341f;
static_assert(kAttendWarps * 16 == kChunk);

// Rows of kDim halves in shared memory, in units of 16 bytes, so that eight rows' units of one column
// lie in different banks: an odd number of units apart, or, where that would take too much room,
// swizzled.
template <int kDim, bool kDense>
struct Tile {
  static constexpr int kUnits = kDim / 8;
  static constexpr bool kSwizzled = kDense && kUnits % 8 == 0;
  static constexpr int kStride = kSwizzled ? kUnits : kUnits + 1;
  static_assert(kUnits % 2 == 0);

  static __device__ __forceinline__ int at(int row, int unit) {
    return row * kStride + (kSwizzled ? unit ^ (row & 7) : unit);
  }
};
template <int kDim>
using CellTile = Tile<kDim, true>;  // keys or values of a chunk
template <int kDim>
using QueryTile = Tile<kDim, false>;
using WeightTile = Tile<kChunk, false>;

// --- joining ---

// How values join those before them.
struct Joint {
  bool keeps;  // nothing joins
  bool takes;  // nothing was there
  float before, now;

  __device__ __forceinline__ float value(float earlier, float value) const {
    const float joined = __fmaf_rn(value, now, __fmul_rn(earlier, before));
    return keeps ? earlier : takes ? value : joined;
  }
};

// Softmax of what has been joined so far. Weights are exp2(score - max); sum 0: nothing yet.
struct Running {
  float max = 0.0f, sum = 0.0f;

  __device__ __forceinline__ Joint join(float other_max, float other_sum) {
    Joint joint;
    joint.keeps = other_sum == 0.0f;
    joint.takes = sum == 0.0f;
    const float difference = __fsub_rn(other_max, max);
    const float smaller = ptx::exp2(-fabsf(difference));
    joint.now = difference >= 0.0f ? 1.0f : smaller;
    joint.before = difference >= 0.0f ? smaller : 1.0f;
    sum = joint.value(sum, other_sum);
    max = joint.keeps ? max : joint.takes ? other_max : fmaxf(max, other_max);
    return joint;
  }
};

// --- shared memory ---

// A unit as it is computed.
struct Unit {
  int row, kv_head;  // of the first query of the item
  int first_query, n_queries;
  int first_chunk, end_chunk;
};

// What a query's row sees.
struct SeenByQuery {
  int first, end;
  int partial_start;
  int unused;
};

template <int kDim, int kTiles>
struct AttendShared {
  static constexpr int kQueries = kTiles * 16;
  uint4 q[kUnitsAhead][kQueries * QueryTile<kDim>::kStride];
  uint4 weights[kQueries * WeightTile::kStride];
  SeenByQuery seen[kUnitsAhead][kQueries];
  float maxima[kAttendWarps][kQueries];
  float sums[kAttendWarps][kQueries];
  Unit units[kUnitsAhead];
  uint64_t ready[kMostStages];
  int item_chunks;
};
template <int kDim>
constexpr int kStageUnits = kChunk* CellTile<kDim>::kStride;  // of 16 bytes

// --- scores ---

// Scores in units of log2(e).
struct Scores {
  float factor;
  float cap_factor = 0.0f;  // 0: no soft cap

  explicit Scores(const AttentionShape& shape) : factor(shape.scale * kLog2E) {
    if (shape.soft_cap > 0.0f) {
      cap_factor = shape.soft_cap * kLog2E;
      factor = 2.0f * factor / shape.soft_cap;
    }
  }
  __device__ __forceinline__ float of(float product) const {
    const float x = __fmul_rn(product, factor);
    if (cap_factor == 0.0f) return x;
    // tanh(y) = 1 - 2 / (1 + exp(2 y)); x is 2 y log2(e).
    const float tanh = __fsub_rn(1.0f, __fdiv_rn(2.0f, __fadd_rn(1.0f, ptx::exp2(x))));
    return __fmul_rn(tanh, cap_factor);
  }
};

// How a launch goes about it.
struct AttendPlan {
  Scores scores;
  int heads_per_kv;
  int n_shares;  // of an item's queries
  int n_stages;
};

// --- loading ---

// Walks through the block's units and their chunks: keys of a chunk, its values, keys of the next. The
// same in all threads but for `cell_`.
template <int kDim, int kTiles>
class Loader {
  using Shared = AttendShared<kDim, kTiles>;
  using Rows = CellTile<kDim>;

 public:
  __device__ __forceinline__ Loader(const AttentionWork& work, const AttendPlan& plan, uint4* ring,
                                    Shared& shared)
      : work_(work),
        plan_(plan),
        shared_(shared),
        ring_(ring),
        n_units_(__ldcg(work.n_items) * work.shape.n_kv_heads * plan.n_shares),
        next_unit_(static_cast<int>(blockIdx.x)) {
    find_next();
    fetch_next_cells();
    enter_next();
  }

  // Whether the unit of this number (0, 1, ... within the block) exists; those before it do.
  __device__ __forceinline__ bool has(int ordinal) const {
    return ordinal < ordinal_ || (ordinal == ordinal_ && unit_ < n_units_);
  }

  // Loads stages up to the n-th as far as there are any, while unit `ordinal` is being computed.
  __device__ __forceinline__ void load_until(int n, int ordinal) {
    while (issued_ < n && unit_ < n_units_ && ordinal_ - ordinal < kUnitsAhead) load_stage();
  }

 private:
  __device__ __forceinline__ int first_query(int unit) const {
    return unit % plan_.n_shares * Shared::kQueries;
  }

  // next_item_: of next_unit_ or the first after it that has queries.
  __device__ __forceinline__ void find_next() {
    for (; next_unit_ < n_units_; next_unit_ += static_cast<int>(gridDim.x)) {
      const int item = next_unit_ / (plan_.n_shares * work_.shape.n_kv_heads);
      next_item_ = __ldcg(reinterpret_cast<const int4*>(work_.items) + item);
      if (plan_.n_shares == 1) break;
      if (first_query(next_unit_) < next_item_.y * plan_.heads_per_kv) break;
    }
  }
  __device__ __forceinline__ void fetch_next_cells() {
    if (next_unit_ >= n_units_) return;
    const SeenCells* last = work_.rows + next_item_.x + next_item_.y - 1;
    next_shared_ = __ldcg(&last->shared);
    next_n_shared_ = __ldcg(&last->n_shared);
    next_own_ = __ldcg(&last->own) - next_n_shared_;
    next_end_ = __ldcg(&last->end);
  }
  __device__ __forceinline__ void enter_next() {
    ++ordinal_;
    unit_ = next_unit_;
    kv_head_ = unit_ / plan_.n_shares % work_.shape.n_kv_heads;
    item_ = next_item_;
    shared_cells_ = next_shared_;
    own_cells_ = next_own_;
    n_shared_ = next_n_shared_;
    end_ = next_end_;
    chunk_ = item_.z;
    if (unit_ < n_units_) fetch_cell();
  }
  // The cell of slot 16 * warp + lane % 16, or -1.
  __device__ __forceinline__ void fetch_cell() {
    const int position = chunk_ * kChunk + static_cast<int>(threadIdx.x) / 32 * 16 + threadIdx.x % 16;
    const int list = position < n_shared_ ? shared_cells_ : own_cells_;
    cell_ = position < end_ ? __ldcg(work_.cells + list + position) : -1;
  }

  // What is loaded with a unit's first keys.
  __device__ __forceinline__ void load_queries() {
    const int buffer = ordinal_ % kUnitsAhead;
    const int first = first_query(unit_), kv = kv_head_, per_row = plan_.heads_per_kv;
    const int n = min(item_.y * per_row - first, Shared::kQueries);
    if (threadIdx.x == 0) {
      shared_.units[buffer] = {.row = item_.x,
                               .kv_head = kv,
                               .first_query = first,
                               .n_queries = n,
                               .first_chunk = item_.z,
                               .end_chunk = item_.w};
    }
    for (int i = static_cast<int>(threadIdx.x); i < Shared::kQueries * Rows::kUnits;
         i += kAttendThreads) {
      const int query = i / Rows::kUnits, unit = i % Rows::kUnits;
      const bool valid = query < n;
      const int row = valid ? item_.x + (first + query) / per_row : 0;
      const int head = valid ? kv * per_row + (first + query) % per_row : 0;
      const __half* from = work_.q + (static_cast<int64_t>(row) * work_.shape.n_heads + head) * kDim;
      ptx::copy_16(shared_.q[buffer] + QueryTile<kDim>::at(query, unit), from + unit * 8, valid);
    }
    if (threadIdx.x < Shared::kQueries) {
      const int query = static_cast<int>(threadIdx.x);
      const bool valid = query < n;
      const int row = valid ? item_.x + (first + query) / per_row : 0;
      SeenByQuery& to = shared_.seen[buffer][query];
      ptx::copy_4(&to.first, &work_.rows[row].first, valid);
      ptx::copy_4(&to.end, &work_.rows[row].end, valid);
      ptx::copy_4(&to.partial_start, work_.partial_start + row, valid);
    }
  }

  // A warp copies the cells of 16 slots, so many lanes one of them.
  static constexpr int kCellLanes = Rows::kUnits <= 8 ? 8 : Rows::kUnits <= 16 ? 16 : 32;
  __device__ __forceinline__ void load_cells(const CacheRows& cache) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
    const int unit = lane % kCellLanes;
    uint4* stage = ring_ + slot_ * kStageUnits<kDim>;
    const std::byte* head = cache.data + kv_head_ * (kDim * 2) + unit * 16;
    const int row_bytes = static_cast<int>(cache.row_bytes);
#pragma unroll
    for (int first = 0; first < 16; first += 32 / kCellLanes) {
      const int row = first + lane / kCellLanes;
      const int cell = __shfl_sync(~0u, cell_, row);
      if (unit >= Rows::kUnits) continue;
      const std::byte* from = head + static_cast<int64_t>(max(cell, 0)) * row_bytes;
      ptx::copy_16(stage + Rows::at(warp * 16 + row, unit), from, cell >= 0);
    }
  }

  __device__ __forceinline__ void load_stage() {
    const bool opens = chunk_ == item_.z;
    if (!values_ && opens) load_queries();
    load_cells(values_ ? work_.values : work_.keys);
    ptx::barrier_arrive_after_copies(&shared_.ready[slot_]);
    ++issued_;
    if (++slot_ == plan_.n_stages) slot_ = 0;
    // What the next unit needs is asked for early, in two steps.
    if (!values_ && opens) {
      next_unit_ = unit_ + static_cast<int>(gridDim.x);
      find_next();
    }
    if (values_) {
      if (opens) fetch_next_cells();
      if (++chunk_ < item_.w) {
        fetch_cell();
      } else {
        enter_next();
      }
    }
    values_ = !values_;
  }

  const AttentionWork& work_;
  const AttendPlan& plan_;
  Shared& shared_;
  uint4* ring_;
  int n_units_;
  int issued_ = 0, slot_ = 0;
  int ordinal_ = -1, unit_ = 0, kv_head_ = 0, chunk_ = 0;
  bool values_ = false;
  int4 item_{};  // row, n_rows, first_chunk, end_chunk
  // Of the item's last row; own cells begin at own_cells_ + n_shared_.
  int shared_cells_ = 0, own_cells_ = 0, n_shared_ = 0, end_ = 0;
  int cell_ = -1;
  int next_unit_;
  int4 next_item_{};
  int next_shared_ = 0, next_own_ = 0, next_n_shared_ = 0, next_end_ = 0;
};
static_assert(sizeof(AttentionItem) == sizeof(int4));

// --- computing ---

// One block per multiprocessor has more room for stages, two hide each other's barriers.
template <int kDim, int kTiles>
constexpr int kAttendBlocks = kTiles == 1 && kDim <= 128 ? 2 : 1;

template <int kDim, int kTiles>  // kTiles: of 16 queries
__global__ void __launch_bounds__(kAttendThreads, (kAttendBlocks<kDim, kTiles>))
    attend_kernel(const __grid_constant__ AttentionWork work, const __grid_constant__ AttendPlan plan) {
  using Rows = CellTile<kDim>;
  using Queries = QueryTile<kDim>;
  // Tiles of 8 columns of values per warp.
  constexpr int kColumns = kDim <= 64 ? 1 : kDim <= 128 ? 2 : 4;
  extern __shared__ __align__(128) uint4 ring[];
  auto& shared =
      *reinterpret_cast<AttendShared<kDim, kTiles>*>(ring + plan.n_stages * kStageUnits<kDim>);

  const int warp = static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int mi = lane / 8, mr = lane % 8;  // the row that this lane addresses for load_matrices
  if (static_cast<int>(threadIdx.x) < plan.n_stages) {
    ptx::barrier_init(&shared.ready[threadIdx.x], kAttendThreads);
  }
  ptx::launch_dependents();
  __syncthreads();
  ptx::wait_dependencies();

  Loader<kDim, kTiles> loader(work, plan, ring, shared);
  loader.load_until(plan.n_stages, 0);
  if (threadIdx.x == 0) shared.item_chunks = __ldcg(work.item_chunks);
  __syncthreads();

  int slot = 0, parity = 0, taken = 0;
  const auto next_stage = [&] {
    const uint4* stage = ring + slot * kStageUnits<kDim>;
    ptx::barrier_wait(&shared.ready[slot], static_cast<uint32_t>(parity));
    ++taken;
    if (++slot == plan.n_stages) {
      slot = 0;
      parity ^= 1;
    }
    return stage;
  };

  for (int ordinal = 0; loader.has(ordinal); ++ordinal) {
    const int buffer = ordinal % kUnitsAhead;
    const Unit& unit = shared.units[buffer];
    Running group_softmax[kTiles][2], total_softmax[kTiles][2];
    float group[kTiles][kColumns][4] = {}, total[kTiles][kColumns][4] = {};

    for (int chunk = unit.first_chunk; chunk < unit.end_chunk; ++chunk) {
      // Scores: this warp takes 16 of the positions.
      float s[kTiles][2][4] = {};
      const uint4* keys = next_stage();
#pragma unroll
      for (int step = 0; step < kDim / 16; ++step) {
        uint32_t b[4];
        ptx::load_matrices(b, keys + Rows::at(warp * 16 + mi / 2 * 8 + mr, step * 2 + mi % 2));
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          uint32_t q[4];
          ptx::load_matrices(
              q, shared.q[buffer] + Queries::at(m * 16 + mi % 2 * 8 + mr, step * 2 + mi / 2));
          ptx::mma_f16(s[m][0], q, b[0], b[1]);
          ptx::mma_f16(s[m][1], q, b[2], b[3]);
        }
      }
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
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
          largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
          if (t == 0) shared.maxima[warp][query] = largest;
        }
      }
      __syncthreads();
      // All are done with these keys and the values before them: their stages are free.
      loader.load_until(taken + plan.n_stages, ordinal);

      // Weights, to shared memory as F16, and their sums.
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
          float sum = 0.0f;
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const __half2 rounded = __floats2half2_rn(ptx::exp2(__fsub_rn(s[m][j][h * 2], largest)),
                                                      ptx::exp2(__fsub_rn(s[m][j][h * 2 + 1], largest)));
            const float2 weights = __half22float2(rounded);
            sum = __fadd_rn(sum, __fadd_rn(weights.x, weights.y));
            reinterpret_cast<__half2*>(shared.weights + WeightTile::at(query, warp * 2 + j))[t] =
                rounded;
          }
          sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 1));
          sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, 2));
          if (t == 0) shared.sums[warp][query] = sum;
          chunk_max[m][h] = largest;
        }
      }
      __syncthreads();

      // Values: this warp takes 8 * kColumns of the columns.
      float o[kTiles][kColumns][4] = {};
      const uint4* values = next_stage();
      if (warp * kColumns < Rows::kUnits) {
        uint32_t two_steps[4];  // of values, where this warp has one tile of columns
#pragma unroll
        for (int step = 0; step < kChunk / 16; ++step) {
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
#pragma unroll
          for (int m = 0; m < kTiles; ++m) {
            uint32_t p[4];
            ptx::load_matrices(
                p, shared.weights + WeightTile::at(m * 16 + mi % 2 * 8 + mr, step * 2 + mi / 2));
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
          float sum = 0.0f;
#pragma unroll
          for (int w = 0; w < kAttendWarps; ++w) {
            sum = __fadd_rn(sum, shared.sums[w][m * 16 + h * 8 + g]);
          }
          const Joint joint = group_softmax[m][h].join(chunk_max[m][h], sum);
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
        loader.load_until(taken + plan.n_stages, ordinal);
      }
    }

#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int query = m * 16 + h * 8 + g;
        const Running& softmax = total_softmax[m][h];
        if (query >= unit.n_queries || softmax.sum == 0.0f) continue;
        const SeenByQuery& seen = shared.seen[buffer][query];
        const int item_chunks = shared.item_chunks;
        const int item = unit.first_chunk / item_chunks - seen.first / kChunk / item_chunks;
        const int head =
            unit.kv_head * plan.heads_per_kv + (unit.first_query + query) % plan.heads_per_kv;
        float* to =
            work.partials +
            (static_cast<int64_t>(seen.partial_start + item) * work.shape.n_heads + head) * (kDim + 2);
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
      loader.load_until(taken + plan.n_stages, ordinal);
      __syncthreads();
    }
  }
}

// --- merging ---

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
  ptx::wait_dependencies();
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
    x.data[x.index(k, row)] = __float2half_rn(result);
  }
  if (head != n_heads - 1) return;
  for (int64_t k = static_cast<int64_t>(n_heads) * head_dim + d; k < x.n_inputs; k += kMergeThreads) {
    x.data[x.index(k, row)] = __float2half_rn(0.0f);
  }
}

}  // namespace forerun::cuda
