// Norms of rows, with what is added before or after them.
#include <algorithm>

#include "core/check.h"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

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
enum class NormOrder { kAddNorm, kNormAdd };

// Four numbers of states + added, which are kept if something was added.
__device__ __forceinline__ float4 added_up(const NormWork& work, int row, int i) {
  const int n = work.shape.n;
  const int64_t offset = static_cast<int64_t>(row) * n;
  const float4 states = load_four(work.states + offset, i, n);
  if (work.added.parts.data == nullptr) return states;
  const float4 sum = sum_of(states, segment_outputs(work.added, row, i));
  store_four(work.sum + offset, i, n, sum);
  return sum;
}

template <NormOrder kOrder, bool kSpread>
__global__ void __launch_bounds__(RowPlace<kSpread>::kBlock)
    norm_kernel(const __grid_constant__ NormWork work) {
  constexpr bool kAddsFirst = kOrder == NormOrder::kAddNorm;
  constexpr int kFours = RowPlace<kSpread>::kFours;
  __shared__ float sums[17];
  ptx::launch_dependents();
  const RowPlace<kSpread> place;
  const int n = work.shape.n;
  ptx::wait_dependencies();
  float4 v[kFours];
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = kAddsFirst ? added_up(work, place.row, i) : segment_outputs(work.added, place.row, i);
    squares = add_squares(squares, v[j]);
  }
  const float factor = norm_factor(row_sum<kSpread>(squares, sums), n, work.eps);
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = scaled(v[j], factor);
    if (work.weight != nullptr) v[j] = product_of(v[j], load_four(work.weight, i, n));
    if constexpr (kAddsFirst) {
      store_operand(work.x, place.row, i, v[j]);
    } else {
      const int64_t offset = static_cast<int64_t>(place.row) * n;
      store_four(work.sum + offset, i, n, sum_of(v[j], load_four(work.states + offset, i, n)));
    }
  }
  if constexpr (kAddsFirst) {
    for (int64_t i = (n + 3) / 4 * 4 + 4 * place.thread; i < work.x.n_inputs;
         i += 4 * static_cast<int>(kSpread ? kRowBlocks * blockDim.x : blockDim.x)) {
      store_operand(work.x, place.row, static_cast<int>(i), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
  }
  leave_row<kSpread>();
}

// How rows are spread depends on their length and on the GPU alone.
template <NormOrder kOrder>
void launch_norm(const NormWork& work, cudaStream_t stream) {
  const auto spread = norm_kernel<kOrder, true>, together = norm_kernel<kOrder, false>;
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

}  // namespace

void add_norm(const float* states, const Segment& added, const float* weight, float eps, RowsShape shape,
              float* sum, const Operand& x, cudaStream_t stream) {
  launch_norm<NormOrder::kAddNorm>({.states = states,
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
  launch_norm<NormOrder::kNormAdd>({.states = states,
                                    .added = added,
                                    .weight = weight,
                                    .eps = eps,
                                    .shape = shape,
                                    .sum = sum,
                                    .x = {}},
                                   stream);
}

}  // namespace forerun::cuda
