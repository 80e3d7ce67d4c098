// Heads on their way to attention: norms, rotation, queries as F16, keys and values to their cells.
#include <cmath>

#include "core/check.h"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

constexpr int kThreads = 256;  // of a block that makes a table
constexpr int kHeadWarps = 4;  // of a block, a head each
constexpr int kMaxHeadDim = 256;

// The largest number that Q8_0 gives back as a finite half.
constexpr float kLargestQ8 = 127.0f * 512.0f;

__device__ __forceinline__ void store_halves(const float* x, int dim, float scale, __half* to) {
  for (int i = static_cast<int>(threadIdx.x) % 32; i < dim / 2; i += 32) {
    const float2 pair = *reinterpret_cast<const float2*>(x + 2 * i);
    reinterpret_cast<__half2*>(to)[i] =
        saturated_halves(__fmul_rn(pair.x, scale), __fmul_rn(pair.y, scale));
  }
}

// A lane to a number of a block; rounded as ggml does: the largest becomes +-127.
__device__ __forceinline__ void store_q8_0(const float* x, int dim, std::byte* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int first = 0; first < dim; first += kQ8Numbers, to += kQ8Bytes) {
    const float number = saturated(x[first + lane], kLargestQ8);
    float largest = fabsf(number);
#pragma unroll
    for (int i = 16; i > 0; i /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, i));
    const float scale = __fdiv_rn(largest, 127.0f);
    const float inverse = scale > 0.0f ? __fdiv_rn(1.0f, scale) : 0.0f;
    const auto quant = static_cast<int>(roundf(__fmul_rn(number, inverse)));
    to[2 + lane] = static_cast<std::byte>(quant);
    if (lane == 0) *reinterpret_cast<__half*>(to) = __float2half_rn(scale);
  }
}

// Heads are counted over queries, then keys, then values.
__global__ void __launch_bounds__(kHeadWarps * 32) heads_kernel(const __grid_constant__ HeadsWork work) {
  __shared__ __align__(16) float shared[kHeadWarps][kMaxHeadDim];
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
  const int per_row = work.n_heads + 2 * work.n_kv_heads, dim = work.head_dim;
  const int unit = static_cast<int>(blockIdx.x) * kHeadWarps + warp;
  if (unit >= work.n_rows * per_row) return;
  const int row = unit / per_row;
  int head = unit % per_row;
  const bool is_query = head < work.n_heads;
  const bool is_value = head >= work.n_heads + work.n_kv_heads;
  if (!is_query) head = (head - work.n_heads) % work.n_kv_heads;
  const Segment& segment = is_query ? work.q : is_value ? work.v : work.k;
  const float* weight = is_query ? work.q_norm : is_value ? nullptr : work.k_norm;
  float* x = shared[warp];

  float4 v[kMaxHeadDim / 128];
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kMaxHeadDim / 128; ++j) {
    const int i = 4 * (lane + 32 * j);
    if (i >= dim) continue;
    v[j] = segment_outputs(segment, row, head * dim + i);
    squares = add_squares(squares, v[j]);
  }
  float factor = 1.0f;
  if (weight != nullptr) {
#pragma unroll
    for (int i = 16; i > 0; i /= 2) squares = __fadd_rn(squares, __shfl_xor_sync(~0u, squares, i));
    factor = norm_factor(squares, dim, work.eps);
  }
#pragma unroll
  for (int j = 0; j < kMaxHeadDim / 128; ++j) {
    const int i = 4 * (lane + 32 * j);
    if (i >= dim) continue;
    if (weight != nullptr) v[j] = product_of(scaled(v[j], factor), load_four(weight, i, dim));
    *reinterpret_cast<float4*>(x + i) = v[j];
  }
  __syncwarp();

  if (!is_value) {
    const int half = work.n_rope_dims / 2;
    const int step = work.rotates_pairs ? 2 : 1, partner = work.rotates_pairs ? 1 : half;
    for (int i = lane; i < half; i += 32) {
      const float2 turn = __ldcg(work.rope + static_cast<int64_t>(row) * half + i);
      const float a = x[step * i], b = x[step * i + partner];
      x[step * i] = __fsub_rn(__fmul_rn(a, turn.x), __fmul_rn(b, turn.y));
      x[step * i + partner] = __fadd_rn(__fmul_rn(a, turn.y), __fmul_rn(b, turn.x));
    }
    __syncwarp();
  }

  if (is_query) {
    const int64_t place = static_cast<int64_t>(row) * work.n_heads + head;
    return store_halves(x, dim, work.q_scale, work.q_out + place * dim);
  }
  std::byte* to = (is_value ? work.values : work.keys) +
                  __ldcg(work.cells + row) * work.cache_row_bytes +
                  cache_bytes(work.cache_type, static_cast<int64_t>(head) * dim);
  if (work.cache_type == GGML_TYPE_Q8_0) return store_q8_0(x, dim, to);
  store_halves(x, dim, 1.0f, reinterpret_cast<__half*>(to));
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
  const int n = work.n_rows * (work.n_heads + 2 * work.n_kv_heads);
  launch(heads_kernel,
         {.blocks = dim3(static_cast<unsigned>((n + kHeadWarps - 1) / kHeadWarps)),
          .threads = kHeadWarps * 32},
         stream, work);
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
