// Products with experts, and what lies around them: rows are gathered for them, and what they make is
// added up.
#include <algorithm>

#include "core/check.h"
#include "model/cuda/experts.h"
#include "model/cuda/product_launch.cuh"
#include "model/cuda/rows.cuh"

namespace forerun::cuda {
namespace {

constexpr int kMostRowsInPlace = 16;  // with more, columns that nobody has would take too long

// --- rows of items ---

constexpr int kGatherThreads = 128;
struct GatherWork {
  const int32_t* places;
  int n_used;
  Operand x;
  Operand to;
};
// A thread copies eight inputs, which lie side by side.
__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(const __grid_constant__ GatherWork work) {
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int64_t k = (int64_t{blockIdx.y} * kGatherThreads + threadIdx.x) * 8;
  if (k >= work.to.n_inputs) return;
  const int route = blockIdx.x, row = route / work.n_used;
  const uint4 eight = __ldcg(reinterpret_cast<const uint4*>(work.x.data + work.x.index(k, row)));
  *reinterpret_cast<uint4*>(work.to.data + work.to.index(k, __ldcg(work.places + route))) = eight;
}

// --- what experts made ---

constexpr int kCombineWarps = 8;
constexpr int kCombined = 32 * 4;  // numbers of a block

__device__ __forceinline__ float logistic(float x) {
  return __fdiv_rn(1.0f, __fadd_rn(1.0f, expf(-x)));
}

// Warps fetch what is to be added, of one expert after the other; one adds it, in order.
__global__ void __launch_bounds__(32 * kCombineWarps)
    combine_kernel(const __grid_constant__ CombineWork work) {
  __shared__ float4 terms[ExpertsConfig::kMostUsed + 1][32];
  ptx::launch_dependents();
  ptx::wait_dependencies();
  const int row = blockIdx.y, n = work.shape.n;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int i = static_cast<int>(blockIdx.x) * kCombined + lane * 4;
  const int n_terms = work.n_used + (work.shared.parts.data != nullptr ? 1 : 0);
  for (int term = warp; i < n && term < n_terms; term += kCombineWarps) {
    if (term < work.n_used) {
      const int route = row * work.n_used + term;
      terms[term][lane] = scaled(segment_outputs(work.made, route, i), __ldcg(work.shares + route));
      continue;
    }
    const float4 shared = segment_outputs(work.shared, row, i);
    terms[term][lane] =
        work.shared_logits == nullptr
            ? shared
            : scaled(shared, logistic(__ldcg(work.shared_logits + int64_t{row} * work.shared_stride)));
  }
  __syncthreads();
  if (warp > 0 || i >= n) return;
  float4 sum = terms[0][lane];
  for (int term = 1; term < n_terms; ++term) sum = sum_of(sum, terms[term][lane]);
  const int64_t offset = int64_t{row} * n;
  store_four(work.sum + offset, i, n,
             sum_of(load_four(work.states + offset, i, n), scaled(sum, work.scale)));
}

}  // namespace

// --- shapes ---

bool ExpertsShape::is_gathered() const {
  return n_rows > kMostRowsInPlace;
}

// Of rows that are gathered: twice as many as an expert has if all are chosen equally often.
int ExpertsShape::width() const {
  if (!is_gathered()) return padded(n_rows);
  return padded(std::min(n_rows, 2 * ((n_routes() + n_experts - 1) / n_experts)));
}

// An expert's last item may have a single column, those before it are full.
int ExpertsShape::most_items() const {
  const int most_chosen = std::min(n_experts, n_routes());
  return is_gathered() ? std::min(n_routes(), most_chosen + (n_routes() - most_chosen) / width())
                       : most_chosen;
}

int64_t routing_numbers(const ExpertsShape& shape) {
  return int64_t{2} * shape.n_routes() + int64_t{shape.most_items()} * (1 + shape.width());
}

Routing routing_at(const ExpertsShape& shape, void* data) {
  Routing routing{.shares = static_cast<float*>(data),
                  .places = static_cast<int32_t*>(data) + shape.n_routes(),
                  .experts = nullptr,
                  .columns = nullptr};
  routing.experts = routing.places + shape.n_routes();
  routing.columns = routing.experts + shape.most_items();
  return routing;
}

int64_t item_halves(const ExpertsShape& shape, int64_t n_inputs) {
  return int64_t{shape.most_items()} * shape.width() * n_inputs;
}

// --- products ---

Cut ExpertMatrices::cut() const {
  Cut cut = one.cut();
  cut.n_runs = std::clamp(Cut::kRuns / (n * n_used), 1, cut.most_runs());
  return cut;
}

// Not if SMs would wait for others then, unless there were many parts.
bool ExpertMatrices::adds_runs(const ExpertsShape& shape) const {
  constexpr int kFewParts = 4;
  const Cut c = cut();
  return shape.n_rows > kMaxRows &&
         (c.most_parts(false) > kFewParts || shape.most_items() * n * c.n_groups() >= 2 * Cut::kRuns);
}

int64_t ExpertMatrices::matrix_floats(const ExpertsShape& shape) const {
  const Cut c = cut();
  return int64_t{c.most_parts(adds_runs(shape))} * shape.n_routes() * c.n_outputs();
}

void multiply_experts(const ExpertMatrices& matrices, const ExpertsShape& shape, const Routing& routing,
                      const ExpertOperand& x, float* parts, cudaStream_t stream) {
  const int width = shape.width();
  CHECK(x.x.padded_rows == width);
  const bool adds_runs = matrices.adds_runs(shape);
  const Cut cut = matrices.cut();
  const ExpertsWork work{.weights = {matrices.data[0], matrices.data[1]},
                         .expert_bytes = static_cast<int64_t>(matrices.one.n_bytes()),
                         .x = x.x.data,
                         .item_halves = x.is_of_items ? width * x.x.n_inputs : 0,
                         .parts = parts,
                         .matrix_floats = matrices.matrix_floats(shape),
                         .part_stride = int64_t{shape.n_routes()} * cut.n_outputs(),
                         .experts = routing.experts,
                         .columns = routing.columns,
                         .n_matrices = matrices.n,
                         .n_items = shape.most_items(),
                         .width = width,
                         .n_ring = 0,  // the launch knows it
                         .cut = cut,
                         .runs_of_block = adds_runs ? Cut::kGroup : 1,
                         .adds_runs = adds_runs};
  kernels_of_type(matrices.one.format->type)->multiply_experts(work, stream);
}

Parts expert_parts(const ExpertMatrices& matrices, const ExpertsShape& shape, int matrix,
                   const float* parts) {
  const Cut cut = matrices.cut();
  return {.data = parts + matrix * matrices.matrix_floats(shape),
          .stride = int64_t{shape.n_routes()} * cut.n_outputs(),
          .n_outputs = cut.n_outputs(),
          .cut = cut,
          .of_groups = matrices.adds_runs(shape)};
}

// --- rows ---

void gather(const ExpertsShape& shape, const Routing& routing, const Operand& x, const Operand& to,
            cudaStream_t stream) {
  CHECK(to.padded_rows == shape.width() && x.n_inputs >= to.n_inputs);
  const auto n_blocks = static_cast<unsigned>((to.n_inputs / 8 + kGatherThreads - 1) / kGatherThreads);
  launch(gather_kernel,
         {.blocks = dim3(static_cast<unsigned>(shape.n_routes()), n_blocks), .threads = kGatherThreads},
         stream, GatherWork{.places = routing.places, .n_used = shape.n_used, .x = x, .to = to});
}

void combine(const CombineWork& work, cudaStream_t stream) {
  CHECK(work.n_used >= 1 && work.n_used <= ExpertsConfig::kMostUsed);
  launch(combine_kernel,
         {.blocks = dim3(static_cast<unsigned>((work.shape.n + kCombined - 1) / kCombined),
                         static_cast<unsigned>(work.shape.n_rows)),
          .threads = 32 * kCombineWarps},
         stream, work);
}

}  // namespace forerun::cuda
