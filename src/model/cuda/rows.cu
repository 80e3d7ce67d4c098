// What is done to rows number by number: copies, gates, logits.
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

constexpr int kThreads = 256;  // of a block, four numbers each

Grid grid_for(int n, int n_rows, int n_at_once) {
  return {.blocks = dim3(static_cast<unsigned>((n + 4 * kThreads - 1) / (4 * kThreads)),
                         static_cast<unsigned>((n_rows + n_at_once - 1) / n_at_once)),
          .threads = kThreads};
}
__device__ __forceinline__ int first_number() {
  return static_cast<int>(blockIdx.x * kThreads + threadIdx.x) * 4;
}
__device__ __forceinline__ int first_row(int n_at_once) {
  return static_cast<int>(blockIdx.y) * n_at_once;
}

struct CopyWork {
  const float* states;
  Segment added;
  const int32_t* chosen;
  RowsShape shape;
  float* to;
};
template <int kRows>
__global__ void __launch_bounds__(kThreads) copy_rows_kernel(const __grid_constant__ CopyWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int n = work.shape.n, i = first_number();
  if (i >= n) return;
  const RowsAtOnce<kRows> rows(first_row(kRows), work.shape.n_rows);
  int from[kRows];
  float4 v[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    from[r] = work.chosen == nullptr ? rows.at[r] : __ldcg(work.chosen + rows.at[r]);
    v[r] = load_four(work.states + static_cast<int64_t>(from[r]) * n, i, n);
  }
  if (work.added.parts.data != nullptr) {
    float4 added[kRows];
    segment_outputs(work.added, from, i, added);
#pragma unroll
    for (int r = 0; r < kRows; ++r) v[r] = sum_of(v[r], added[r]);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r < rows.n) store_four(work.to + static_cast<int64_t>(rows.at[r]) * n, i, n, v[r]);
  }
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
  RowsShape shape;
  const int32_t* places;
  Operand x;
};
template <Gate kGate, int kRows>
__global__ void __launch_bounds__(kThreads, 3) gated_kernel(const __grid_constant__ GatedWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int i = first_number();
  if (i >= work.x.n_inputs) return;
  const RowsAtOnce<kRows> rows(first_row(kRows), work.shape.n_rows);
  const bool is_there = i < work.shape.n;
  float4 a[kRows], b[kRows];
  if (is_there) {
    segment_outputs(work.a, rows.at, i, a);
    segment_outputs(work.b, rows.at, i, b);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows.n) continue;
    float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (is_there) {
      y = product_of(make_float4(gate_of<kGate>(a[r].x), gate_of<kGate>(a[r].y), gate_of<kGate>(a[r].z),
                                 gate_of<kGate>(a[r].w)),
                     b[r]);
    }
    store_operand(work.x, work.places == nullptr ? rows.at[r] : __ldcg(work.places + rows.at[r]), i, y);
  }
}

struct FinishWork {
  Segment segment;
  int n_rows;
  float cap;
  float* y;
};
template <int kRows>
__global__ void __launch_bounds__(kThreads) finish_kernel(const __grid_constant__ FinishWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int n = work.segment.n, i = first_number();
  if (i >= n) return;
  const RowsAtOnce<kRows> rows(first_row(kRows), work.n_rows);
  float4 v[kRows];
  segment_outputs(work.segment, rows.at, i, v);
  const float cap = work.cap;
  const auto capped = [&](float x) { return __fmul_rn(cap, tanhf(__fmul_rn(x, __fdiv_rn(1.0f, cap)))); };
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows.n) continue;
    if (cap > 0.0f) v[r] = make_float4(capped(v[r].x), capped(v[r].y), capped(v[r].z), capped(v[r].w));
    store_four(work.y + static_cast<int64_t>(rows.at[r]) * n, i, n, v[r]);
  }
}

// `of_many` has kRowsAtOnce rows at a time, of segments that have fours.
template <typename Work>
struct RowsKernels {
  void (*of_one)(Work);
  void (*of_many)(Work);
};
template <typename Work>
void launch_rows(const RowsKernels<Work>& kernels, const Work& work, RowsShape shape, bool have_fours,
                 cudaStream_t stream) {
  const bool many = shape.n_rows > kFewRows && have_fours;
  launch(many ? kernels.of_many : kernels.of_one,
         grid_for(shape.n, shape.n_rows, many ? kRowsAtOnce : 1), stream, work);
}
template <Gate kGate>
void launch_gated(const GatedWork& work, cudaStream_t stream) {
  launch_rows<GatedWork>({gated_kernel<kGate, 1>, gated_kernel<kGate, kRowsAtOnce>}, work,
                         {.n_rows = work.shape.n_rows, .n = static_cast<int>(work.x.n_inputs)},
                         has_fours(work.a) && has_fours(work.b), stream);
}

}  // namespace

void copy_rows(const float* states, const Segment& added, const int32_t* chosen, RowsShape shape,
               float* to, cudaStream_t stream) {
  launch_rows<CopyWork>({copy_rows_kernel<1>, copy_rows_kernel<kRowsAtOnce>},
                        {.states = states, .added = added, .chosen = chosen, .shape = shape, .to = to},
                        shape, has_fours(added), stream);
}

void gated(Gate gate, const Segment& a, const Segment& b, RowsShape shape, const int32_t* places,
           const Operand& x, cudaStream_t stream) {
  const GatedWork work{.a = a, .b = b, .shape = shape, .places = places, .x = x};
  switch (gate) {
    case Gate::kSilu: return launch_gated<Gate::kSilu>(work, stream);
    case Gate::kGelu: return launch_gated<Gate::kGelu>(work, stream);
  }
}

void finish(const Segment& segment, int n_rows, float cap, float* y, cudaStream_t stream) {
  launch_rows<FinishWork>({finish_kernel<1>, finish_kernel<kRowsAtOnce>},
                          {.segment = segment, .n_rows = n_rows, .cap = cap, .y = y},
                          {.n_rows = n_rows, .n = segment.n}, has_fours(segment), stream);
}

}  // namespace forerun::cuda
