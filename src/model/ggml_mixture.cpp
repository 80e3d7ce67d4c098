// Mixtures of experts of ggml's own operations.
#include <cmath>

#include "core/check.h"
#include "model/ggml_graph_builder.h"

namespace forerun {

// Which experts each row uses, and the part that each of them has.
GgmlGraphBuilder::Routes GgmlGraphBuilder::routes(const ExpertWeights& experts, ggml_tensor* x) {
  const ExpertsConfig& mixture = config().experts;
  const int64_t n_rows = x->ne[1];
  ggml_tensor* scores = linear(experts.router, x);  // [n_experts, n_rows]
  if (mixture.gating == ExpertGating::kSoftmax) scores = ggml_soft_max(context(), scores);
  if (mixture.gating == ExpertGating::kSigmoid) scores = ggml_sigmoid(context(), scores);
  ggml_tensor* chosen_by = scores;
  if (experts.preference != nullptr) chosen_by = ggml_add(context(), scores, experts.preference);
  ggml_tensor* chosen = ggml_argsort_top_k(context(), chosen_by, mixture.n_used);  // [n_used, n_rows]
  ggml_tensor* shares =
      ggml_get_rows(context(), ggml_reshape_3d(context(), scores, 1, mixture.n_all, n_rows), chosen);
  shares = ggml_reshape_2d(context(), shares, mixture.n_used, n_rows);
  if (mixture.gating == ExpertGating::kSoftmaxOfChosen) shares = ggml_soft_max(context(), shares);
  if (mixture.normalises) {
    ggml_tensor* sum =
        ggml_clamp(context(), ggml_sum_rows(context(), shares), ExpertsConfig::kLeastSum, INFINITY);
    shares = ggml_div(context(), shares, sum);
  }
  if (mixture.scale != 1.0f) shares = ggml_scale(context(), shares, mixture.scale);
  return {.chosen = chosen, .shares = ggml_reshape_3d(context(), shares, 1, mixture.n_used, n_rows)};
}

ggml_tensor* GgmlGraphBuilder::mixture(const MlpWeights& mlp, ggml_tensor* states) {
  const ExpertWeights& experts = *mlp.experts;
  CHECK(mlp.post_norm.kind == NormKind::kNone);
  ggml_tensor* x = norm(states, mlp.norm);
  const Routes routes = this->routes(experts, x);
  expand(routes.shares);  // before what uses them: backends compute it all at once then
  const auto of_chosen = [&](const Linear& stack, ggml_tensor* from) {
    ggml_tensor* y = ggml_mul_mat_id(context(), stack.weight, from, routes.chosen);
    return stack.bias != nullptr ? ggml_add_id(context(), y, stack.bias, routes.chosen) : y;
  };
  ggml_tensor* each = ggml_reshape_3d(context(), x, x->ne[0], 1, x->ne[1]);
  ggml_tensor* up = of_chosen(experts.up, each);
  ggml_tensor* made = of_chosen(experts.down, activated(of_chosen(experts.gate, each), up));
  made = ggml_mul(context(), made, routes.shares);  // [n_embd, n_used, n_rows]
  ggml_tensor* sum = nullptr;
  for (int64_t rank = 0; rank < made->ne[1]; ++rank) {
    ggml_tensor* one = ggml_view_2d(context(), made, made->ne[0], made->ne[2], made->nb[2],
                                    static_cast<size_t>(rank) * made->nb[1]);
    sum = sum == nullptr ? one : ggml_add(context(), sum, one);
  }
  if (mlp.down.weight != nullptr) {
    ggml_tensor* shared_up = linear(mlp.up, x);
    ggml_tensor* shared = linear(mlp.down, activated(linear(mlp.gate, x), shared_up));
    if (experts.shared_share.weight != nullptr) {
      shared = ggml_mul(context(), shared, ggml_sigmoid(context(), linear(experts.shared_share, x)));
    }
    sum = ggml_add(context(), sum, shared);
  }
  if (config().residual_scale != 1.0f) sum = ggml_scale(context(), sum, config().residual_scale);
  return ggml_add(context(), sum, states);
}

}  // namespace forerun
