// Norms of rows, with what is added before or after them.
#include <algorithm>

#include "core/check.h"
#include "model/cuda/lanes.cuh"
#include "model/cuda/launch.cuh"
#include "model/cuda/ptx.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

constexpr int kMaxNormed = 16384;  // numbers of a row
constexpr int kSpreadFrom = 2048;

// Who has a row. A long one is summed as 1024 threads in eight blocks do it, whoever has it.
enum class RowOf {
  kBlock,      // a short row: one block
  kCluster,    // a long one: eight blocks, so that one row, too, is read by several multiprocessors
  kWideBlock,  // a long one of many: one block, whose threads do what two of a cluster's do
};
constexpr int kRowBlocks = 8;     // of a cluster
constexpr int kClusterWarps = 4;  // of each of them

// Thread t has fours t, t + kThreads, ...
template <RowOf kOf>
struct RowPlace {
  static constexpr bool kIsCluster = kOf == RowOf::kCluster;
  static constexpr int kBlock = kIsCluster ? 32 * kClusterWarps : 512;
  static constexpr int kThreads = kIsCluster ? kRowBlocks * kBlock : kBlock;            // of a row
  static constexpr int kMost = kOf == RowOf::kWideBlock ? kMaxNormed / 2 : kMaxNormed;  // numbers
  static constexpr int kFours = kMost / 4 / kThreads;
  // Sums of a thread: four j belongs to sum j % kSums.
  static constexpr int kSums = kOf == RowOf::kWideBlock ? 2 : 1;
  static_assert(kOf == RowOf::kBlock || kThreads * kSums == kRowBlocks * kClusterWarps * 32);
  int row, thread;

  __device__ __forceinline__ RowPlace() {
    const int block = static_cast<int>(blockIdx.x), t = static_cast<int>(threadIdx.x);
    row = kIsCluster ? block / kRowBlocks : block;
    thread = kIsCluster ? block % kRowBlocks * kBlock + t : t;
  }
  __device__ __forceinline__ int at(int four) const { return 4 * (thread + four * kThreads); }
};

// In order.
__device__ __forceinline__ float sum_in_order(const float* x, int n) {
  float sum = x[0];
  for (int i = 1; i < n; ++i) sum = __fadd_rn(sum, x[i]);
  return sum;
}

// The sum over a row's threads, in all of them: of a warp, of the warps of a block, of a cluster's
// blocks. `shared`: kSharedSums floats.
constexpr int kSharedSums = kRowBlocks * kClusterWarps;
template <RowOf kOf>
__device__ __forceinline__ float row_sum(float (&sums)[RowPlace<kOf>::kSums], float* shared) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int s = 0; s < RowPlace<kOf>::kSums; ++s) {
    sums[s] = sum_over_lanes(sums[s]);
    if (threadIdx.x % 32 == 0) shared[s * (RowPlace<kOf>::kBlock / 32) + warp] = sums[s];
  }
  __syncthreads();
  if constexpr (kOf == RowOf::kBlock) return sum_in_order(shared, static_cast<int>(blockDim.x) / 32);
  float blocks[kRowBlocks];
  if constexpr (kOf == RowOf::kCluster) {
    const float total = sum_in_order(shared, kClusterWarps);
    float* of_block = shared + kClusterWarps;
    if (threadIdx.x == 0) *of_block = total;
    ptx::cluster_sync();
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
      blocks[b] = ptx::load_from_block(of_block, static_cast<uint32_t>(b));
    }
  } else {
#pragma unroll
    for (int b = 0; b < kRowBlocks; ++b) {
      blocks[b] = sum_in_order(shared + b * kClusterWarps, kClusterWarps);
    }
  }
  return sum_in_order(blocks, kRowBlocks);
}
// A block must not end while another may read its sum.
template <RowOf kOf>
__device__ __forceinline__ void leave_row() {
  if constexpr (kOf == RowOf::kCluster) ptx::cluster_sync();
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

// Four numbers of what is added. A wide block is for segments that have fours; there are many rows, and
// few parts.
template <RowOf kOf>
__device__ __forceinline__ float4 outputs_of(const Segment& added, int row, int i) {
  if constexpr (kOf != RowOf::kWideBlock) return segment_outputs(added, row, i);
  float4 y[1];
  outputs_of_rows<2>(added, {row}, i, y);
  return y[0];
}
// Four numbers of states + added, which are kept if something was added.
template <RowOf kOf>
__device__ __forceinline__ float4 added_up(const NormWork& work, int row, int i) {
  const int n = work.shape.n;
  const int64_t offset = static_cast<int64_t>(row) * n;
  const float4 states = load_four(work.states + offset, i, n);
  if (work.added.parts.data == nullptr) return states;
  const float4 sum = sum_of(states, outputs_of<kOf>(work.added, row, i));
  store_four(work.sum + offset, i, n, sum);
  return sum;
}

template <NormOrder kOrder, RowOf kOf>
__global__ void __launch_bounds__(RowPlace<kOf>::kBlock, kOf == RowOf::kWideBlock ? 2 : 1)
    norm_kernel(const __grid_constant__ NormWork work) {
  constexpr bool kAddsFirst = kOrder == NormOrder::kAddNorm;
  constexpr int kFours = RowPlace<kOf>::kFours, kSums = RowPlace<kOf>::kSums;
  __shared__ float shared[kSharedSums];
  ptx::launch_dependents();
  const RowPlace<kOf> place;
  const int n = work.shape.n;
  ptx::wait_dependencies();
  float4 v[kFours];
  float squares[kSums] = {};
#pragma unroll
  for (int j = 0; j < kFours; ++j) {
    const int i = place.at(j);
    if (i >= n) continue;
    v[j] = kAddsFirst ? added_up<kOf>(work, place.row, i) : outputs_of<kOf>(work.added, place.row, i);
    squares[j % kSums] = add_squares(squares[j % kSums], v[j]);
  }
  const float factor = norm_factor(row_sum<kOf>(squares, shared), n, work.eps);
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
         i += 4 * static_cast<int>((place.kIsCluster ? kRowBlocks : 1) * blockDim.x)) {
      store_operand(work.x, place.row, static_cast<int>(i), make_float4(0.0f, 0.0f, 0.0f, 0.0f));
    }
  }
  leave_row<kOf>();
}

// How a row is summed depends on its length and on the GPU alone.
template <NormOrder kOrder>
void launch_norm(const NormWork& work, cudaStream_t stream) {
  const auto cluster = norm_kernel<kOrder, RowOf::kCluster>;
  const RowsShape shape = work.shape;
  CHECK(shape.n > 0 && shape.n <= kMaxNormed);
  const auto n_rows = static_cast<unsigned>(shape.n_rows);
  if (shape.n < kSpreadFrom || !has_hopper_code(cluster)) {
    const int threads = std::min((shape.n + 127) / 128 * 32, RowPlace<RowOf::kBlock>::kBlock);
    return launch(norm_kernel<kOrder, RowOf::kBlock>, {.blocks = dim3(n_rows), .threads = threads},
                  stream, work);
  }
  if (shape.n_rows > kFewRows && shape.n <= RowPlace<RowOf::kWideBlock>::kMost &&
      has_fours(work.added)) {
    return launch(norm_kernel<kOrder, RowOf::kWideBlock>,
                  {.blocks = dim3(n_rows), .threads = RowPlace<RowOf::kWideBlock>::kBlock}, stream,
                  work);
  }
  launch(cluster,
         {.blocks = dim3(n_rows * kRowBlocks),
          .threads = RowPlace<RowOf::kCluster>::kBlock,
          .cluster = kRowBlocks},
         stream, work);
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
