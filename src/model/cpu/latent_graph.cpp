// Attention with latent numbers: every head has matrices of its own.
#include "model/cpu/graph_builder.h"

namespace forerun {

ExpertGroups::Shape CpuGraphBuilder::head_shape(int64_t n_heads) const {
  return {.n_rows = n_heads,
          .n_used = 1,
          .n_experts = config().heads.n,
          .rows_together = kernels_.rows_together};
}

ggml_tensor* CpuGraphBuilder::head_groups(int64_t n_heads) {
  if (head_groups_ != nullptr) return head_groups_;
  const ExpertGroups::Shape shape = head_shape(n_heads);
  const auto route_bytes = static_cast<int64_t>(sizeof(Route));
  ggml_tensor* routes = ops_.add(context(), head_routes_op(config().heads.n),
                                 {GGML_TYPE_I8, route_bytes, n_heads}, {parts().inputs.positions});
  head_groups_ = ops_.add(context(), group_op(shape), {GGML_TYPE_I32, shape.n_numbers(), 1}, {routes});
  return head_groups_;
}

ggml_tensor* CpuGraphBuilder::multiply_heads(const Linear& linear, ggml_tensor* heads, int64_t n_in) {
  const ExpertGroups::Shape shape = head_shape(heads->ne[1]);
  const ActivationLayout layout{kernels_, n_in, shape.most_slots()};
  ggml_tensor* groups = head_groups(heads->ne[1]);
  ggml_tensor* gathered =
      ops_.add(context(), gather_op(kernels_, shape, n_in), layout.output(), {heads, groups});
  Product product = product_of({linear}, gathered);
  product.sources.push_back(groups);
  return ops_.add(context(), expert_product_op(kernels_, shape, product.parts[0]),
                  {GGML_TYPE_F32, product.n_out / shape.n_experts, shape.most_slots()},
                  std::move(product.sources));
}

ggml_tensor* CpuGraphBuilder::latent_queries(int layer, ggml_tensor* states) {
  const AttentionWeights& attention = this->layer(layer).attention;
  const LatentWeights& weights = *attention.latent;
  const LatentConfig& latent = config().latent;
  const int n_heads = config().heads.n;
  const int64_t n_rows = states->ne[1];
  ggml_tensor* x = activations(attention.norm, states);
  ggml_tensor* read = x;
  if (weights.query_down.weight != nullptr)
    read = activations(weights.query_norm, multiply({weights.query_down}, x));
  ggml_tensor* queries = multiply({weights.query}, read);
  ggml_tensor* down = multiply({weights.down}, x);
  const ActivationLayout each{kernels_, latent.n_query, n_rows * n_heads};
  ggml_tensor* split = ops_.add(
      context(),
      split_heads_op(kernels_, n_heads, int64_t{latent.n_query} + latent.n_rotated, latent.n_query),
      each.output(), {queries});
  ggml_tensor* compared = multiply_heads(weights.query_up, split, latent.n_query);
  const LatentHeadsOptions heads{.config = &config(),
                                 .weights = &weights,
                                 .shape = head_shape(each.n_rows),
                                 .keys = parts().cache.keys(layer)};
  return ops_.add(
      context(), latent_heads_op(kernels_, heads), {GGML_TYPE_F32, config().heads.n_embd_q(), n_rows},
      {queries, compared, head_groups(each.n_rows), down, rope_table(layer), parts().inputs.cells});
}

ggml_tensor* CpuGraphBuilder::latent_values(int layer, const AttendOptions& attention,
                                            ggml_tensor* partials) {
  const LatentConfig& latent = config().latent;
  const int n_heads = attention.shape.n_heads;
  const int64_t n_rows = partials->ne[1];
  const ActivationLayout each{kernels_, latent.n, n_rows * n_heads},
      all{kernels_, int64_t{n_heads} * latent.n_value, n_rows};
  ggml_tensor* merged =
      ops_.add(context(), merge_heads_op(kernels_, attention, latent.n), each.output(), {partials});
  ggml_tensor* values = multiply_heads(this->layer(layer).attention.latent->value_up, merged, latent.n);
  return ops_.add(context(), join_heads_op(kernels_, head_shape(each.n_rows), n_heads, latent.n_value),
                  all.output(), {values, head_groups(each.n_rows)});
}

}  // namespace forerun
