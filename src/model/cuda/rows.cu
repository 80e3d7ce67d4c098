#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/parts.cuh"
#include "model/cuda/rows.h"

namespace forerun::cuda {
namespace {

// --- rows in fours ---

// Numbers [i, i + 4) of n, i a multiple of 4; zeros beyond the last.
__device__ __forceinline__ float4 load_four(const float* x, int i, int n) {
  if (i + 4 <= n && is_aligned(x)) return __ldcg(reinterpret_cast<const float4*>(x + i));
  const auto one = [&](int k) { return k < n ? __ldcg(x + k) : 0.0f; };
  return make_float4(one(i), one(i + 1), one(i + 2), one(i + 3));
}
__device__ __forceinline__ void store_four(float* x, int i, int n, float4 v) {
  if (i + 4 <= n && is_aligned(x)) {
    *reinterpret_cast<float4*>(x + i) = v;
    return;
  }
  if (i < n) x[i] = v.x;
  if (i + 1 < n) x[i + 1] = v.y;
  if (i + 2 < n) x[i + 2] = v.z;
  if (i + 3 < n) x[i + 3] = v.w;
}
__device__ __forceinline__ void store_operand(const Operand& x, int row, int i, float4 v) {
  *reinterpret_cast<__half2*>(x.data + x.index(i, row)) =
      __floats2half2_rn(v.x, v.y);
  *reinterpret_cast<__half2*>(x.data + x.index(i + 2, row)) =
      __floats2half2_rn(v.z, v.w);
}
__device__ __forceinline__ float4 product_of(float4 a, float4 b) {
  return make_float4(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y), __fmul_rn(a.z, b.z), __fmul_rn(a.w, b.w));
}
__device__ __forceinline__ float4 scaled(float4 a, float b) {
  return product_of(a, make_float4(b, b, b, b));
}
__device__ __forceinline__ float add_squares(float sum, float4 v) {
  return __fmaf_rn(v.w, v.w, __fmaf_rn(v.z, v.z, __fmaf_rn(v.y, v.y, __fmaf_rn(v.x, v.x, sum))));
}
// 1 / root of the mean of squares.
__device__ __forceinline__ float norm_factor(float sum_of_squares, int n, float eps) {
  const float mean = __fdiv_rn(sum_of_squares, static_cast<float>(n));
  return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
}

// --- norms ---

// A row is read by one block or, so that one row, too, is read by several multiprocessors, by a cluster
// of eight. Thread t has fours t, t + kThreads, ...
constexpr int kRowBlocks = 8;      // of a cluster
constexpr int kMaxNormed = 16384;  // numbers of a row
constexpr int kSpreadFrom = 2048;

template <bool kSpread>
struct RowPlace {
  static constexpr int kThreads = kSpread ? 1024 : 512;  // of a row
  static constexpr int kBlock = kSpread ? kThreads / kRowBlocks : kThreads;
  static constexpr int kFours = kMaxNormed / 4 / kThreads;
  int row, thread;

  __device__ __forceinline__ RowPlace() {
    const int block = static_cast<int>(blockIdx.x), t = static_cast<int>(threadIdx.x);
    row = kSpread ? block / kRowBlocks : block;
    thread = kSpread ? block % kRowBlocks * kBlock + t : t;
  }
  __device__ __forceinline__ int at(int four) const { return 4 * (thread + four * kThreads); }
};

// The sum over a row's threads, in all of them. `shared`: 17 floats.
template <bool kSpread>
__device__ __forceinline__ float row_sum(float sum, float* shared) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, i));
  const int n_warps = static_cast<int>(blockDim.x) / 32;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = shared[0];
  for (int w = 1; w < n_warps; ++w) total = __fadd_rn(total, shared[w]);
  if constexpr (kSpread) {
    if (threadIdx.x == 0) shared[16] = total;
    ptx::cluster_sync();
    float blocks[kRowBlocks];
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
      blocks[b] = ptx::load_from_block(shared + 16, static_cast<uint32_t>(b));
    }
    total = blocks[0];
#pragma unroll
    for (int b = 1; b < kRowBlocks; ++b) total = __fadd_rn(total, blocks[b]);
  }
  return total;
}
// A block must not end while another may read its sum.
template <bool kSpread>
__device__ __forceinline__ void leave_row() {
  if constexpr (kSpread) ptx::cluster_sync();
}

struct NormWork {
  const float* states;
  Segment added;
  const float* weight;
  float eps;
  RowsShape shape;
  float* sum;
  Operand x;
};

template <bool kSpread>
__global__ void __launch_bounds__(RowPlace<kSpread>::kBlock)
    add_norm_kernel(const __grid_constant__ NormWork work) {
  constexpr int kFours = RowPlace<kSpread>::kFours;
  __shared__ float sums[17];
  ptx::launch_dependents();
  const RowPlace<kSpread> place;
  const int n = work.shape.n;
  ptx::wait_dependencies();
  const int64_t offset = static_cast<int64_t>(place.row) * n;
  float4 v[kFours];
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = load_four(work.states + offset, i, n);
    if (work.added.parts.data != nullptr) {
      v[j] = sum_of(v[j], segment_outputs(work.added, place.row, i));
      store_four(work.sum + offset, i, n, v[j]);
    }
    squares = add_squares(squares, v[j]);
  }
  const float factor = norm_factor(row_sum<kSpread>(squares, sums), n, work.eps);
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = scaled(v[j], factor);
    if (work.weight != nullptr) v[j] = product_of(v[j], load_four(work.weight, i, n));
    store_operand(work.x, place.row, i, v[j]);
  }
  for (int64_t i = (n + 3) / 4 * 4 + 4 * place.thread; i < work.x.n_inputs;
       i += 4 * static_cast<int>(kSpread ? kRowBlocks * blockDim.x : blockDim.x)) {
    store_operand(work.x, place.row, static_cast<int>(i), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
  }
  leave_row<kSpread>();
}

template <bool kSpread>
__global__ void __launch_bounds__(RowPlace<kSpread>::kBlock)
    norm_add_kernel(const __grid_constant__ NormWork work) {
  constexpr int kFours = RowPlace<kSpread>::kFours;
  __shared__ float sums[17];
  ptx::launch_dependents();
  const RowPlace<kSpread> place;
  const int n = work.shape.n;
  ptx::wait_dependencies();
  const int64_t offset = static_cast<int64_t>(place.row) * n;
  float4 v[kFours];
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = segment_outputs(work.added, place.row, i);
    squares = add_squares(squares, v[j]);
  }
  const float factor = norm_factor(row_sum<kSpread>(squares, sums), n, work.eps);
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = scaled(v[j], factor);
    if (work.weight != nullptr) v[j] = product_of(v[j], load_four(work.weight, i, n));
    store_four(work.sum + offset, i, n, sum_of(v[j], load_four(work.states + offset, i, n)));
  }
  leave_row<kSpread>();
}

// How rows are spread depends on their length and on the GPU alone.
template <typename Kernel>
void launch_norm(Kernel spread, Kernel together, const NormWork& work, cudaStream_t stream) {
  const RowsShape shape = work.shape;
  CHECK(shape.n > 0 && shape.n <= kMaxNormed);
  const auto n_rows = static_cast<unsigned>(shape.n_rows);
  if (shape.n >= kSpreadFrom && has_hopper_code(spread)) {
    return launch(
        spread,
        {.blocks = dim3(n_rows * kRowBlocks), .threads = RowPlace<true>::kBlock, .cluster = kRowBlocks},
        stream, work);
  }
  const int threads = std::min((shape.n + 127) / 128 * 32, RowPlace<false>::kBlock);
  launch(together, {.blocks = dim3(n_rows), .threads = threads}, stream, work);
}

// --- number by number ---

constexpr int kThreads = 256;  // of a block, four numbers each

Grid grid_for(int64_t n, int n_rows) {
  return {.blocks = dim3(static_cast<unsigned>((n + 4 * kThreads - 1) / (4 * kThreads)),
                         static_cast<unsigned>(n_rows)),
          .threads = kThreads};
}
__device__ __forceinline__ int first_number() {
  return static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * 4;
}

struct CopyWork {
  const float* states;
  Segment added;
  const int32_t* chosen;
  int n;
  float* to;
};
__global__ void __launch_bounds__(kThreads) copy_rows_kernel(const __grid_constant__ CopyWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int row = static_cast<int>(blockIdx.y), i = first_number();
  if (i >= work.n) return;
  const int from = work.chosen == nullptr ? row : __ldcg(work.chosen + row);
  float4 v = load_four(work.states + static_cast<int64_t>(from) * work.n, i, work.n);
  if (work.added.parts.data != nullptr) v = sum_of(v, segment_outputs(work.added, from, i));
  store_four(work.to + static_cast<int64_t>(row) * work.n, i, work.n, v);
}

template <Gate kGate>
__device__ __forceinline__ float gate_of(float x) {
  if constexpr (kGate == Gate::kSilu) return __fdiv_rn(x, __fadd_rn(1.0f, expf(-x)));
  // x / 2 * (1 + tanh(y)) with y = sqrt(2 / pi) * (x + 0.044715 * x^3); (1 + tanh(y)) / 2 is
  // 1 / (1 + exp(-2 * y)).
  const float cubic = __fmaf_rn(__fmul_rn(x, x), 0.044715f, 1.0f);
  const float minus_2y = __fmul_rn(__fmul_rn(x, -2.0f * 0.79788456080286535588f), cubic);
  return __fdiv_rn(x, __fadd_rn(1.0f, expf(minus_2y)));
}

struct GatedWork {
  Segment a, b;
  int n;
  Operand x;
};
template <Gate kGate>
__global__ void __launch_bounds__(kThreads) gated_kernel(const __grid_constant__ GatedWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int row = static_cast<int>(blockIdx.y), i = first_number();
  if (i >= work.x.n_inputs) return;
  float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (i < work.n) {
    const float4 a = segment_outputs(work.a, row, i), b = segment_outputs(work.b, row, i);
    y = product_of(
        make_float4(gate_of<kGate>(a.x), gate_of<kGate>(a.y), gate_of<kGate>(a.z), gate_of<kGate>(a.w)),
        b);
  }
  store_operand(work.x, row, i, y);
}

__global__ void __launch_bounds__(kThreads)
    finish_kernel(const __grid_constant__ Segment segment, float cap, float* y) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int row = static_cast<int>(blockIdx.y), i = first_number();
  if (i >= segment.n) return;
  float4 v = segment_outputs(segment, row, i);
  if (cap > 0.0f) {
    const auto capped = [&](float x) {
      return __fmul_rn(cap, tanhf(__fmul_rn(x, __fdiv_rn(1.0f, cap))));
    };
    v = make_float4(capped(v.x), capped(v.y), capped(v.z), capped(v.w));
  }
  store_four(y + static_cast<int64_t>(row) * segment.n, i, segment.n, v);
}

// --- heads ---

constexpr int kHeadWarps = 4;  // of a block, a head each
constexpr int kMaxHeadDim = 256;

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

  __half* to = is_query
                   ? work.q_out + static_cast<int64_t>(row) * work.n_heads * dim
                   : (is_value ? work.values : work.keys) + __ldcg(work.cells + row) * work.cache_row;
  to += head * dim;
  for (int i = lane; i < dim / 2; i += 32) {
    float2 pair = *reinterpret_cast<const float2*>(x + 2 * i);
    if (is_query) pair = {__fmul_rn(pair.x, work.q_scale), __fmul_rn(pair.y, work.q_scale)};
    reinterpret_cast<__half2*>(to)[i] = __floats2half2_rn(pair.x, pair.y);
  }
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

void add_norm(const float* states, const Segment& added, const float* weight, float eps, RowsShape shape,
              float* sum, const Operand& x, cudaStream_t stream) {
  launch_norm(add_norm_kernel<true>, add_norm_kernel<false>,
              {.states = states,
               .added = added,
               .weight = weight,
               .eps = eps,
               .shape = shape,
               .sum = sum,
               .x = x},
              stream);
}

void norm_add(const float* states, const Segment& added, const float* weight, float eps, RowsShape shape,
              float* sum, cudaStream_t stream) {
  launch_norm(norm_add_kernel<true>, norm_add_kernel<false>,
              {.states = states,
               .added = added,
               .weight = weight,
               .eps = eps,
               .shape = shape,
               .sum = sum,
               .x = {}},
              stream);
}

void copy_rows(const float* states, const Segment& added, const int32_t* chosen, RowsShape shape,
               float* to, cudaStream_t stream) {
  const CopyWork work{.states = states, .added = added, .chosen = chosen, .n = shape.n, .to = to};
  launch(copy_rows_kernel, grid_for(shape.n, shape.n_rows), stream, work);
}

void gated(Gate gate, const Segment& a, const Segment& b, RowsShape shape, const Operand& x,
           cudaStream_t stream) {
  const GatedWork work{.a = a, .b = b, .n = shape.n, .x = x};
  const Grid grid = grid_for(x.n_inputs, shape.n_rows);
  switch (gate) {
    case Gate::kSilu: return launch(gated_kernel<Gate::kSilu>, grid, stream, work);
    case Gate::kGelu: return launch(gated_kernel<Gate::kGelu>, grid, stream, work);
  }
}

void finish(const Segment& segment, int n_rows, float cap, float* y, cudaStream_t stream) {
  launch(finish_kernel, grid_for(segment.n, n_rows), stream, segment, cap, y);
}

void heads(const HeadsWork& work, cudaStream_t stream) {
  CHECK(work.head_dim % 4 == 0 && work.head_dim <= kMaxHeadDim);
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
