// Mixtures of experts in graphs of our own CUDA kernels.
#include "core/check.h"
#include "model/cuda/graph_builder.h"
#include "model/cuda/graph_tensors.h"

namespace forerun::cuda {
namespace {

FloatMatrix float_matrix_of(const Linear& linear) {
  if (linear.weight == nullptr) return {};
  return {.weights = floats_of(linear.weight),
          .scale = floats_of(linear.scale),
          .bias = floats_of(linear.bias)};
}

// Operands of items, one behind the other.
Operand item_operand(const ExpertsShape& shape, int64_t n_inputs, ggml_tensor* node) {
  return {.data = static_cast<__half*>(node->data), .padded_rows = shape.width(), .n_inputs = n_inputs};
}

NodeOutput item_output(const ExpertsShape& shape, int64_t n_inputs) {
  const auto n_bytes = static_cast<size_t>(item_halves(shape, n_inputs)) * sizeof(__half);
  return {GGML_TYPE_I8, width_of(n_bytes, shape.n_rows), shape.n_rows};
}

}  // namespace

Segment CudaGraphBuilder::ExpertOutput::segment() const {
  return {.parts = expert_parts(matrices, shape, which, floats_of(product)),
          .first = 0,
          .n = n,
          .scale = nullptr,
          .bias = nullptr};
}

void CudaGraphBuilder::choose_experts(Mixture& mixture, ggml_tensor* x) {
  const ExpertsShape shape = mixture.shape;
  const ExpertsConfig& experts = config().experts;
  const Linear router = mixture.experts.router, shared_share = mixture.experts.shared_share;
  const auto scores_of = [=, place = operands_.at(x), n_in = config().n_embd](ggml_tensor* scores) {
    return ScoresWork{.x = place.in(x),
                      .router = float_matrix_of(router),
                      .shared = float_matrix_of(shared_share),
                      .n_in = n_in,
                      .n_experts = shape.n_experts,
                      .n_rows = shape.n_rows,
                      .scores = output_of(scores)};
  };
  mixture.n_scores = shape.n_experts + (shared_share.weight != nullptr ? 1 : 0);
  mixture.scores =
      ops_.add(context(), {GGML_TYPE_F32, mixture.n_scores, shape.n_rows}, {x},
               [=](ggml_tensor* dst, cudaStream_t stream) { score_experts(scores_of(dst), stream); });
  const auto launch = [=, scores = mixture.scores, n_scores = mixture.n_scores,
                       preference = mixture.experts.preference](ggml_tensor* dst, cudaStream_t stream) {
    route({.shape = shape,
           .scores = floats_of(scores),
           .n_scores = n_scores,
           .preference = floats_of(preference),
           .gating = experts.gating,
           .normalises = experts.normalises,
           .scale = experts.scale,
           .routing = routing_at(shape, dst->data)},
          stream);
  };
  const auto n_bytes = static_cast<size_t>(routing_numbers(shape)) * sizeof(int32_t);
  mixture.routing = ops_.add(context(), {GGML_TYPE_I8, width_of(n_bytes, shape.n_rows), shape.n_rows},
                             {mixture.scores}, launch);
}

CudaGraphBuilder::ExpertInput CudaGraphBuilder::gathered(const Mixture& mixture, ggml_tensor* x) {
  const OperandPlace place = operands_.at(x);
  const ExpertsShape shape = mixture.shape;
  if (!shape.is_gathered()) return {.node = x, .place = place, .is_of_items = false};
  const int64_t n_inputs = n_inputs_for({mixture.experts.gate, mixture.experts.up});
  const auto launch = [=, routing = mixture.routing](ggml_tensor* dst, cudaStream_t stream) {
    gather(shape, routing_at(shape, routing->data), place.in(x), item_operand(shape, n_inputs, dst),
           stream);
  };
  return {.node = ops_.add(context(), item_output(shape, n_inputs), {x, mixture.routing}, launch),
          .place = {.start = 0, .n_inputs = n_inputs},
          .is_of_items = true};
}

// A product for those that are alike.
std::vector<CudaGraphBuilder::ExpertOutput> CudaGraphBuilder::multiply_experts(
    const Mixture& mixture, const std::vector<Linear>& stacks, const ExpertInput& x) {
  const ExpertsShape shape = mixture.shape;
  std::vector<ExpertOutput> outputs;
  for (size_t i = 0; i < stacks.size();) {
    const Matrix one = matrix_of(stacks[i]);
    ExpertMatrices matrices{.one = one, .data = {one.data}, .n = 1, .n_used = shape.n_used};
    if (i + 1 < stacks.size()) {
      const Matrix next = matrix_of(stacks[i + 1]);
      if (next.format == one.format && next.n_in == one.n_in && next.n_out == one.n_out) {
        matrices.data[1] = next.data;
        matrices.n = 2;
      }
    }
    const auto launch = [=, routing = mixture.routing](ggml_tensor* dst, cudaStream_t stream) {
      Operand operand = x.place.in(x.node);
      operand.padded_rows = shape.width();
      cuda::multiply_experts(matrices, shape, routing_at(shape, routing->data),
                             {.x = operand, .is_of_items = x.is_of_items}, output_of(dst), stream);
    };
    const auto n_bytes = static_cast<size_t>(matrices.n * matrices.matrix_floats(shape)) * sizeof(float);
    ggml_tensor* product =
        ops_.add(context(), {GGML_TYPE_I8, width_of(n_bytes, shape.n_rows), shape.n_rows},
                 {x.node, mixture.routing}, launch);
    for (int which = 0; which < matrices.n; ++which, ++i) {
      outputs.push_back({.product = product,
                         .matrices = matrices,
                         .shape = shape,
                         .which = which,
                         .n = static_cast<int>(stacks[i].gpu->n_out)});
    }
  }
  return outputs;
}

CudaGraphBuilder::ExpertInput CudaGraphBuilder::gated_experts(const Mixture& mixture,
                                                              const ExpertInput& x) {
  const ExpertsShape shape = mixture.shape;
  const std::vector<ExpertOutput> outputs =
      multiply_experts(mixture, {mixture.experts.gate, mixture.experts.up}, x);
  const int64_t n_inputs = n_inputs_for({mixture.experts.down});
  const RowsShape routes{.n_rows = shape.n_routes(), .n = outputs[0].n};
  const auto launch = [=, gate = gate(), routing = mixture.routing](ggml_tensor* dst,
                                                                    cudaStream_t stream) {
    cuda::gated(gate, outputs[0].segment(), outputs[1].segment(), routes,
                routing_at(shape, routing->data).places, item_operand(shape, n_inputs, dst), stream);
  };
  std::vector<ggml_tensor*> sources{mixture.routing, outputs[0].product};
  if (outputs[1].product != outputs[0].product) sources.push_back(outputs[1].product);
  return {.node = ops_.add(context(), item_output(shape, n_inputs), std::move(sources), launch),
          .place = {.start = 0, .n_inputs = n_inputs},
          .is_of_items = true};
}

ggml_tensor* CudaGraphBuilder::mixture(const MlpWeights& mlp, ggml_tensor* states) {
  CHECK(mlp.post_norm.kind == NormKind::kNone);
  const bool has_shared = mlp.down.weight != nullptr;
  Mixture mixture{.experts = *mlp.experts,
                  .shape = {.n_rows = n_rows_of(states),
                            .n_used = config().experts.n_used,
                            .n_experts = config().experts.n_all}};
  std::vector<Linear> readers{mlp.experts->gate, mlp.experts->up};
  if (has_shared) readers.insert(readers.end(), {mlp.gate, mlp.up});
  ggml_tensor* x = activations(mlp.norm, states, readers);
  const ggml_tensor* base = states_of(states).base;

  choose_experts(mixture, x);
  const ExpertInput gated = gated_experts(mixture, gathered(mixture, x));
  const ExpertOutput made = multiply_experts(mixture, {mixture.experts.down}, gated).front();
  std::optional<Output> shared;
  std::vector<ggml_tensor*> sources{states_of(states).base, made.product, mixture.routing,
                                    mixture.scores};
  if (has_shared) {
    shared = multiply({mlp.down}, gated_of(mlp, x)).front();
    sources.push_back(shared->product);
  }
  const bool weighs_shared = mixture.experts.shared_share.weight != nullptr;
  const auto launch = [=, shape = mixture.shape, n_scores = mixture.n_scores, routing = mixture.routing,
                       scores = mixture.scores, n_embd = config().n_embd,
                       scale = config().residual_scale](ggml_tensor* dst, cudaStream_t stream) {
    combine({.states = floats_of(base),
             .made = made.segment(),
             .shares = routing_at(shape, routing->data).shares,
             .n_used = shape.n_used,
             .shared = shared ? shared->segment() : Segment{},
             .shared_logits = weighs_shared ? floats_of(scores) + shape.n_experts : nullptr,
             .shared_stride = n_scores,
             .scale = scale,
             .shape = {.n_rows = shape.n_rows, .n = n_embd},
             .sum = output_of(dst)},
            stream);
  };
  return ops_.add(context(), {GGML_TYPE_F32, config().n_embd, mixture.shape.n_rows}, std::move(sources),
                  launch);
}

}  // namespace forerun::cuda
