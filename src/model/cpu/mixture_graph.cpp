// Mixtures of experts.
#include "model/cpu/graph_builder.h"

namespace forerun {

ggml_tensor* CpuGraphBuilder::mixture(const MlpWeights& mlp, ggml_tensor* states) {
  const ExpertWeights& experts = *mlp.experts;
  const int64_t n_embd = states->ne[0], n_rows = states->ne[1], n_ff = config().experts.n_ff;
  const ExpertGroups::Shape shape{.n_rows = n_rows,
                                  .n_used = config().experts.n_used,
                                  .n_experts = config().experts.n_all,
                                  .rows_together = kernels_.rows_together};
  ggml_tensor* x = activations(mlp.norm, states);
  ggml_tensor* of_router = experts.norms ? activations(experts.norms->router, states) : x;
  ggml_tensor* of_experts = experts.norms ? activations(experts.norms->experts, states) : x;
  const auto route_bytes = static_cast<int64_t>(sizeof(Route)) * shape.n_used;
  ggml_tensor* routes =
      ops_.add(context(), route_op(config().experts, experts), {GGML_TYPE_I8, route_bytes, n_rows},
               {multiply({experts.router}, of_router)});
  ggml_tensor* groups =
      ops_.add(context(), group_op(shape), {GGML_TYPE_I32, shape.n_numbers(), 1}, {routes});

  const bool weighs_inputs = config().experts.weighs_inputs, is_gathered = n_rows > 1 || weighs_inputs;
  ggml_tensor* gathered = of_experts;
  if (is_gathered) {
    const ActivationLayout layout{kernels_, n_embd, shape.most_slots()};
    std::vector<ggml_tensor*> sources = {of_experts, groups};
    if (weighs_inputs) sources.push_back(routes);
    gathered =
        ops_.add(context(), gather_op(kernels_, shape, n_embd), layout.output(), std::move(sources));
  }
  const bool is_fused = experts.gate_up.weight != nullptr;
  Product in = product_of(
      is_fused ? std::vector{experts.gate_up, experts.gate_up} : std::vector{experts.gate, experts.up},
      gathered);
  if (is_fused) in.parts[1].first = n_ff;
  in.sources.push_back(groups);
  const ActivationLayout layout{kernels_, n_ff, shape.most_slots()};
  ggml_tensor* gated = ops_.add(context(),
                                expert_gated_op(kernels_, gate_activation(config().activation), shape,
                                                n_ff, std::move(in.parts), is_gathered),
                                layout.output(), std::move(in.sources));
  Product out = product_of({experts.down}, gated);
  out.sources.push_back(groups);
  ggml_tensor* made = ops_.add(context(), expert_product_op(kernels_, shape, out.parts[0]),
                               {GGML_TYPE_F32, n_embd, shape.most_slots()}, std::move(out.sources));

  const auto combine = [&](std::vector<ggml_tensor*> added) {
    std::vector<ggml_tensor*> sources = {made, routes, groups};
    sources.insert(sources.end(), added.begin(), added.end());
    return ops_.add(context(), combine_op(shape, config().residual_scale, !weighs_inputs),
                    {GGML_TYPE_F32, n_embd, n_rows}, std::move(sources));
  };
  const bool has_shared = mlp.down.weight != nullptr;
  ggml_tensor* shared = has_shared ? multiply({mlp.down}, gated_of(mlp, x)) : nullptr;
  if (experts.norms) {
    ggml_tensor* sum = norm_add(experts.norms->made, combine({}),
                                has_shared ? norm_add(experts.norms->shared, shared) : nullptr);
    return norm_add(mlp.post_norm, sum, states);
  }
  std::vector<ggml_tensor*> added = {states};
  if (has_shared) {
    added.push_back(shared);
    if (experts.shared_share.weight != nullptr) added.push_back(multiply({experts.shared_share}, x));
  }
  return combine(std::move(added));
}

}  // namespace forerun
