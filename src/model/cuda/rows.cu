// What is done to rows number by number: copies, gates, logits.
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

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

}  // namespace

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

}  // namespace forerun::cuda
