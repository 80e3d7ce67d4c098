// Heads on their way to attention: norms, rotation, queries as F16, keys and values to their cells.
#include <cmath>

#include "core/check.h"
#include "model/cuda/lanes.cuh"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

constexpr int kThreads = 256;  // of a block that makes a table
constexpr int kHeadWarps = 4;  // of a block
constexpr int kMaxHeadDim = 256;

// The largest number that Q8_0 gives back as a finite half.
constexpr float kLargestQ8 = 127.0f * 512.0f;

// A head of kLanes lanes, four numbers at a time.
template <int kLanes>
__device__ __forceinline__ void store_halves(const float* x, int dim, float scale, __half* to) {
  for (int i = 4 * (static_cast<int>(threadIdx.x) % kLanes); i < dim; i += 4 * kLanes) {
    const float4 v = scaled(*reinterpret_cast<const float4*>(x + i), scale);
    const __half2 four[2] = {saturated_halves(v.x, v.y), saturated_halves(v.z, v.w)};
    *reinterpret_cast<uint2*>(to + i) = *reinterpret_cast<const uint2*>(four);
  }
}

// A lane to a number of a block, or to two; rounded as ggml does: the largest becomes +-127. All lanes
// of a warp compute, those that have something store it.
template <int kLanes>
__device__ __forceinline__ void store_q8_0(const float* x, int dim, bool stores, std::byte* to) {
  constexpr int kOwn = kQ8Numbers / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  for (int first = 0; first < dim; first += kQ8Numbers, to += kQ8Bytes) {
    float number[kOwn], largest = 0.0f;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      number[k] = saturated(x[first + lane + k * kLanes], kLargestQ8);
      largest = fmaxf(largest, fabsf(number[k]));
    }
    largest = max_over_lanes<kLanes>(largest);
    const float scale = __fdiv_rn(largest, 127.0f);
    const float inverse = scale > 0.0f ? __fdiv_rn(1.0f, scale) : 0.0f;
    if (!stores) continue;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const auto quant = static_cast<int>(roundf(__fmul_rn(number[k], inverse)));
      to[2 + lane + k * kLanes] = static_cast<std::byte>(quant);
    }
    if (lane == 0) *reinterpret_cast<__half*>(to) = __float2half_rn(scale);
  }
}

// x: a head of kLanes lanes.
template <int kLanes>
__device__ __forceinline__ void rotate(const HeadsWork& work, int row, float* x) {
  const int half = work.n_rope_dims / 2;
  const int step = work.rotates_pairs ? 2 : 1, partner = work.rotates_pairs ? 1 : half;
  for (int i = static_cast<int>(threadIdx.x) % kLanes; i < half; i += kLanes) {
    const float2 turn = __ldcg(work.rope + static_cast<int64_t>(row) * half + i);
    const float a = x[step * i], b = x[step * i + partner];
    x[step * i] = __fsub_rn(__fmul_rn(a, turn.x), __fmul_rn(b, turn.y));
    x[step * i + partner] = __fadd_rn(__fmul_rn(a, turn.y), __fmul_rn(b, turn.x));
  }
}

// Heads are counted over queries, then keys, then values.
struct HeadKind {
  bool is_query, is_value;
  int head;  // of its kind

  __device__ __forceinline__ HeadKind(const HeadsWork& work, int index)
      : is_query(index < work.n_heads), is_value(index >= work.n_heads + work.n_kv_heads) {
    head = is_query ? index : (index - work.n_heads) % work.n_kv_heads;
  }
};

// x: the head as it is stored, of all lanes of a warp. `stores`: whether the row is there.
template <int kLanes>
__device__ __forceinline__ void store_head(const HeadsWork& work, const HeadKind& kind, int row,
                                           const float* x, bool stores) {
  const int dim = work.head_dim;
  if (kind.is_query) {
    const int64_t place = static_cast<int64_t>(row) * work.n_heads + kind.head;
    if (stores) store_halves<kLanes>(x, dim, work.q_scale, work.q_out + place * dim);
    return;
  }
  std::byte* to = (kind.is_value ? work.values : work.keys) +
                  __ldcg(work.cells + row) * work.cache_row_bytes +
                  cache_bytes(work.cache_type, static_cast<int64_t>(kind.head) * dim);
  if (work.cache_type == GGML_TYPE_Q8_0) return store_q8_0<kLanes>(x, dim, stores, to);
  if (stores) store_halves<kLanes>(x, dim, 1.0f, reinterpret_cast<__half*>(to));
}

// Who has a head of up to kMaxDim numbers: a warp, or half of one, while the other has that of other
// rows. Sums of squares are the same: lanes without a number add zeros to them.
template <int kMaxDim>
struct HeadLanes {
  static constexpr int kLanes = kMaxDim < 128 ? 16 : 32;
  static constexpr int kFours = kMaxDim / 4 / kLanes;  // of a lane
  static constexpr int kGroups = 32 / kLanes;          // of lanes, in a warp
  // Both groups read the same place of their heads, from different banks of shared memory.
  static constexpr int kRoom = kMaxDim + (kGroups == 1 ? 0 : kLanes);
};

template <int kMaxDim, int kRows>
__global__ void __launch_bounds__(kHeadWarps * 32)
    heads_kernel(const __grid_constant__ HeadsWork work, int n_units) {
  using Lanes = HeadLanes<kMaxDim>;
  constexpr int kLanes = Lanes::kLanes, kFours = Lanes::kFours;
  __shared__ __align__(16) float shared[kHeadWarps][Lanes::kGroups][Lanes::kRoom];
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % kLanes;
  const int group = static_cast<int>(threadIdx.x) % 32 / kLanes;
  const int per_row = work.n_heads + 2 * work.n_kv_heads, dim = work.head_dim;
  const int unit = static_cast<int>(blockIdx.x) * kHeadWarps + warp;
  if (unit >= n_units) return;
  const RowsAtOnce<kRows> rows((unit / per_row * Lanes::kGroups + group) * kRows, work.n_rows);
  const HeadKind kind(work, unit % per_row);
  const Segment& segment = kind.is_query ? work.q : kind.is_value ? work.v : work.k;
  const float* weight = kind.is_query ? work.q_norm : kind.is_value ? nullptr : work.k_norm;
  float* x = shared[warp][group];

  float4 v[kFours][kRows], weights[kFours];
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = 4 * (lane + kLanes * j);
    if (i >= dim) continue;
    segment_outputs(segment, rows.at, kind.head * dim + i, v[j]);
    if (weight != nullptr) weights[j] = load_four(weight, i, dim);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float factor = 1.0f;
    if (weight != nullptr) {
      float squares = 0.0f;
#pragma unroll
      for (int j = 0; j < kFours; ++j) {
        if (4 * (lane + kLanes * j) < dim) squares = add_squares(squares, v[j][r]);
      }
      squares = sum_over_lanes<kLanes>(squares);
      factor = norm_factor(squares, dim, work.eps);
    }
    if (r > 0) __syncwarp();  // the row before has been read
#pragma unroll
    for (int j = 0; j < kFours; ++j) {
      const int i = 4 * (lane + kLanes * j);
      if (i >= dim) continue;
      if (weight != nullptr) v[j][r] = product_of(scaled(v[j][r], factor), weights[j]);
      *reinterpret_cast<float4*>(x + i) = v[j][r];
    }
    __syncwarp();
    if (!kind.is_value) {
      rotate<kLanes>(work, rows.at[r], x);
      __syncwarp();
    }
    store_head<kLanes>(work, kind, rows.at[r], x, r < rows.n);
  }
}

template <int kMaxDim, int kRows>
void launch_heads(const HeadsWork& work, cudaStream_t stream) {
  constexpr int kWarpRows = HeadLanes<kMaxDim>::kGroups * kRows;
  const int n_units = (work.n_rows + kWarpRows - 1) / kWarpRows * (work.n_heads + 2 * work.n_kv_heads);
  launch(heads_kernel<kMaxDim, kRows>,
         {.blocks = dim3(static_cast<unsigned>((n_units + kHeadWarps - 1) / kHeadWarps)),
          .threads = kHeadWarps * 32},
         stream, work, n_units);
}

__global__ void __launch_bounds__(kThreads)
    rope_table_kernel(const __grid_constant__ RopeTable table, float theta_scale,
                      const int32_t* positions, int n_rows, float2* to) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int half = table.n_dims / 2;
  const int place = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (place >= n_rows * half) return;
  const int i = place % half;
  // One multiplication after the other, since its rounding is part of the definition.
  auto theta = static_cast<float>(__ldcg(positions + place / half));
  for (int k = 0; k < i; ++k) theta = __fmul_rn(theta, theta_scale);
  if (table.factors != nullptr) theta = __fdiv_rn(theta, table.factors[i]);
  float angle = __fmul_rn(table.freq_scale, theta);
  if (table.ext_factor != 0.0f) {
    // YaRN: low frequencies are interpolated, high ones kept, those between are mixed.
    const float width = fmaxf(0.001f, __fsub_rn(table.yarn_high, table.yarn_low));
    const float where = __fdiv_rn(__fsub_rn(static_cast<float>(i), table.yarn_low), width);
    const float kept = __fmul_rn(__fsub_rn(1.0f, fminf(fmaxf(where, 0.0f), 1.0f)), table.ext_factor);
    angle = __fadd_rn(__fmul_rn(angle, __fsub_rn(1.0f, kept)), __fmul_rn(theta, kept));
  }
  to[place] =
      make_float2(__fmul_rn(cosf(angle), table.magnitude), __fmul_rn(sinf(angle), table.magnitude));
}

}  // namespace

void heads(const HeadsWork& work, cudaStream_t stream) {
  CHECK(work.head_dim % 4 == 0 && work.head_dim <= kMaxHeadDim);
  CHECK(work.cache_type == GGML_TYPE_F16 ||
        (work.cache_type == GGML_TYPE_Q8_0 && work.head_dim % kQ8Numbers == 0));
  CHECK(work.cache_type != GGML_TYPE_F16 || work.cache_row_bytes % 8 == 0);
  const bool have_fours = has_fours(work.q) && has_fours(work.k) && has_fours(work.v);
  if (work.n_rows <= kFewRows || !have_fours) return launch_heads<kMaxHeadDim, 1>(work, stream);
  if (work.head_dim <= 64) return launch_heads<64, kRowsAtOnce>(work, stream);
  if (work.head_dim <= 128) return launch_heads<128, kRowsAtOnce>(work, stream);
  launch_heads<kMaxHeadDim, kRowsAtOnce>(work, stream);
}

void rope_table(const RopeTable& table, const int32_t* positions, int n_rows, float2* to,
                cudaStream_t stream) {
  const float theta_scale = std::pow(table.freq_base, -2.0f / static_cast<float>(table.n_dims));
  const int n = n_rows * (table.n_dims / 2);
  launch(rope_table_kernel,
         {.blocks = dim3(static_cast<unsigned>((n + kThreads - 1) / kThreads)), .threads = kThreads},
         stream, table, theta_scale, positions, n_rows, to);
}

}  // namespace forerun::cuda
