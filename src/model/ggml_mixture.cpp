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
  shares = ggml_reshape_3d(context(), shares, 1, mixture.n_used, n_rows);
  if (experts.scales != nullptr) {
    ggml_tensor* scales = ggml_reshape_3d(context(), experts.scales, 1, mixture.n_all, 1);
    scales = ggml_repeat_4d(context(), scales, 1, mixture.n_all, n_rows, 1);
    shares = ggml_mul(context(), shares, ggml_get_rows(context(), scales, chosen));
  }
  return {.chosen = chosen, .shares = shares};
}

// What the chosen experts make of x, by their shares.
ggml_tensor* GgmlGraphBuilder::experts_of(const ExpertWeights& experts, const Routes& routes,
                                          ggml_tensor* x) {
  const auto of_chosen = [&](const Linear& stack, ggml_tensor* from) {
    ggml_tensor* y = ggml_mul_mat_id(context(), stack.weight, from, routes.chosen);
    return stack.bias != nullptr ? ggml_add_id(context(), y, stack.bias, routes.chosen) : y;
  };
  const bool weighs_inputs = config().experts.weighs_inputs;
  ggml_tensor* each = ggml_reshape_3d(context(), x, x->ne[0], 1, x->ne[1]);
  if (weighs_inputs) {
    each = ggml_repeat_4d(context(), each, x->ne[0], config().experts.n_used, x->ne[1], 1);
    each = ggml_mul(context(), each, routes.shares);
  }
  ggml_tensor *gate, *up;
  if (experts.gate_up.weight != nullptr) {
    ggml_tensor* both = of_chosen(experts.gate_up, each);  // [2 n_ff, n_used, n_rows]
    const auto half = [&](int64_t which) {
      return ggml_view_3d(context(), both, both->ne[0] / 2, both->ne[1], both->ne[2], both->nb[1],
                          both->nb[2], static_cast<size_t>(which * both->ne[0] / 2) * both->nb[0]);
    };
    gate = half(0);
    up = half(1);
  } else {
    up = of_chosen(experts.up, each);
    gate = of_chosen(experts.gate, each);
  }
  ggml_tensor* made = of_chosen(experts.down, activated(gate, up));
  // [n_embd, n_used, n_rows]
  if (!weighs_inputs) made = ggml_mul(context(), made, routes.shares);
  ggml_tensor* sum = nullptr;
  for (int64_t rank = 0; rank < made->ne[1]; ++rank) {
    ggml_tensor* one = ggml_view_2d(context(), made, made->ne[0], made->ne[2], made->nb[2],
                                    static_cast<size_t>(rank) * made->nb[1]);
    sum = sum == nullptr ? one : ggml_add(context(), sum, one);
  }
  return sum;
}

ggml_tensor* GgmlGraphBuilder::mixture(const MlpWeights& mlp, ggml_tensor* states) {
  const ExpertWeights& experts = *mlp.experts;
  const ExpertWeights::Norms norms = experts.norms.value_or(ExpertWeights::Norms{});
  ggml_tensor* x = norm(states, mlp.norm);
  const Routes routes = this->routes(experts, experts.norms ? norm(states, norms.router) : x);
  expand(routes.shares);  // before what uses them: backends compute it all at once then
  ggml_tensor* of_experts = experts.norms ? norm(states, norms.experts) : x;
  ggml_tensor* sum = norm(experts_of(experts, routes, of_experts), norms.made);
  if (mlp.down.weight != nullptr) {
    ggml_tensor* shared_up = linear(mlp.up, x);
    ggml_tensor* shared = linear(mlp.down, activated(linear(mlp.gate, x), shared_up));
    if (experts.shared_share.weight != nullptr) {
      shared = ggml_mul(context(), shared, ggml_sigmoid(context(), linear(experts.shared_share, x)));
    }
    sum = ggml_add(context(), sum, norm(shared, norms.shared));
  }
  if (config().residual_scale != 1.0f) sum = ggml_scale(context(), sum, config().residual_scale);
  return ggml_add(context(), norm(sum, mlp.post_norm), states);
}

}  // namespace forerun
