#include "model/ggml_graph_builder.h"

#include <array>
#include <numbers>

#include "core/check.h"
#include "model/kernels/kernels.h"

namespace forerun {
namespace {

class GgmlProgram final : public PassProgram {
 public:
  GgmlProgram(Device& device, ggml_cgraph* graph) : device_(device), graph_(graph) {}
  void run() override { device_.compute(graph_); }

 private:
  Device& device_;
  ggml_cgraph* graph_;
};

}  // namespace

std::unique_ptr<PassProgram> GgmlGraphBuilder::finish() {
  return std::make_unique<GgmlProgram>(parts().device, parts().graph);
}

ggml_tensor* GgmlGraphBuilder::norm(ggml_tensor* x, const Norm& norm) {
  if (norm.kind == NormKind::kNone) return x;
  ggml_tensor* y = norm.kind == NormKind::kLayer ? ggml_norm(context(), x, config().norm_eps)
                                                 : ggml_rms_norm(context(), x, config().norm_eps);
  if (norm.weight != nullptr) y = ggml_mul(context(), y, norm.weight);
  if (norm.bias != nullptr) y = ggml_add(context(), y, norm.bias);
  return y;
}

ggml_tensor* GgmlGraphBuilder::norm_heads(ggml_tensor* heads, const Norm& norm) {
  if (norm.kind == NormKind::kNone || config().head_norms != HeadNorms::kTogether)
    return this->norm(heads, norm);
  const auto [dim, n_heads, n_rows] = std::array{heads->ne[0], heads->ne[1], heads->ne[2]};
  ggml_tensor* rows = ggml_view_2d(context(), heads, dim * n_heads, n_rows, heads->nb[2], 0);
  return ggml_reshape_3d(context(), this->norm(rows, norm), dim, n_heads, n_rows);
}

ggml_tensor* GgmlGraphBuilder::linear(const Linear& linear, ggml_tensor* x) {
  ggml_tensor* y = ggml_mul_mat(context(), linear.weight, x);
  if (linear.scale != nullptr) y = ggml_mul(context(), y, linear.scale);
  if (linear.bias != nullptr) y = ggml_add(context(), y, linear.bias);
  return y;
}

GgmlGraphBuilder::QueryKeyValue GgmlGraphBuilder::project(int layer, ggml_tensor* x) {
  const AttentionWeights& attention = this->layer(layer).attention;
  const auto& [n, n_kv, dim] = config().heads_of(layer);
  const int64_t n_rows = x->ne[1];
  if (attention.qkv.weight == nullptr) {
    const auto heads = [&, dim = dim](const Linear& projection, int n_heads) {
      return ggml_reshape_3d(context(), linear(projection, x), dim, n_heads, n_rows);
    };
    QueryKeyValue made{.q = heads(attention.q, n), .k = nullptr, .v = nullptr};
    if (!config().has_cells(layer)) return made;
    made.k = heads(attention.k, n_kv);
    made.v = attention.v.weight != nullptr ? heads(attention.v, n_kv) : made.k;
    return made;
  }
  ggml_tensor* fused = linear(attention.qkv, x);  // [n_embd_q + 2 n_embd_kv, n_rows]
  const auto heads = [&, dim = dim](int n_heads, int64_t first, ggml_tensor* bias) {
    const size_t size = ggml_element_size(fused);
    ggml_tensor* view =
        ggml_view_3d(context(), fused, dim, n_heads, n_rows, static_cast<size_t>(dim) * size,
                     fused->nb[1], static_cast<size_t>(first) * size);
    return bias == nullptr ? view
                           : ggml_add(context(), view, ggml_reshape_2d(context(), bias, dim, n_heads));
  };
  return {.q = heads(n, 0, attention.q.bias),
          .k = heads(n_kv, int64_t{n} * dim, attention.k.bias),
          .v = heads(n_kv, int64_t{n + n_kv} * dim, attention.v.bias)};
}

ggml_tensor* GgmlGraphBuilder::rope(ggml_tensor* heads, int layer) {
  if (!config().rotates(layer)) return heads;
  const RopeConfig& rope = config().rope_of(layer);
  const int mode = rope.layout == RopeLayout::kHalves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  ggml_tensor* factors = rope.has_factors ? parts().weights.rope_factors : nullptr;
  return ggml_rope_ext(context(), heads, parts().inputs.positions, factors, rope.n_dims, mode,
                       rope.n_ctx_original, rope.freq_base, rope.freq_scale, rope.ext_factor,
                       rope.attn_factor, rope.beta_fast, rope.beta_slow);
}

ggml_tensor* GgmlGraphBuilder::queries(int layer, ggml_tensor* states) {
  if (config().latent.n > 0) return latent_queries(layer, states);
  const AttentionWeights& weights = this->layer(layer).attention;
  QueryKeyValue qkv = project(layer, norm(states, weights.norm));
  const auto place = [&](ggml_tensor* heads, const Norm& norm) {
    if (config().head_norms == HeadNorms::kEachRotated) return norm_heads(rope(heads, layer), norm);
    return rope(norm_heads(heads, norm), layer);
  };
  qkv.q = place(qkv.q, weights.q_norm);
  if (config().query_scale != 1.0f) qkv.q = ggml_scale(context(), qkv.q, config().query_scale);
  if (config().has_temperature(layer)) {
    ggml_tensor* factors = parts().inputs.temperatures;
    qkv.q = ggml_mul(context(), qkv.q, ggml_reshape_3d(context(), factors, 1, 1, factors->ne[0]));
  }
  if (qkv.k == nullptr) return qkv.q;
  if (config().has_value_norms) qkv.v = norm(qkv.v, {.kind = NormKind::kRms});
  qkv.k = place(qkv.k, weights.k_norm);

  // In this order: backends fuse a rotation with the store that follows it.
  expand(qkv.q);
  expand(qkv.v);
  expand(qkv.k);
  store(parts().cache.keys(layer), qkv.k);
  store(parts().cache.values(layer), qkv.v);
  return qkv.q;
}

// [n, n_kv_heads, n_rows], of rows without gaps.
void GgmlGraphBuilder::store(ggml_tensor* cache, ggml_tensor* heads) {
  ggml_tensor* rows =
      ggml_view_2d(context(), heads, heads->ne[0] * heads->ne[1], heads->ne[2], heads->nb[2], 0);
  expand(ggml_set_rows(context(), cache, rows, parts().inputs.cells));
}

// The first n numbers of heads in the first n_kv cells of a layer's keys or values as [n, n_kv,
// n_kv_heads].
ggml_tensor* GgmlGraphBuilder::cell_view(ggml_tensor* cache, const HeadsConfig& heads, int64_t n) {
  ggml_tensor* view =
      ggml_view_3d(context(), cache, n, heads.n_kv, parts().n_kv, ggml_row_size(cache->type, heads.dim),
                   ggml_row_size(cache->type, cache->ne[0]), 0);
  return ggml_permute(context(), view, 0, 2, 1, 3);
}

ggml_tensor* GgmlGraphBuilder::attend(int layer, ggml_tensor* queries) {
  ggml_tensor* mask = config().is_windowed(layer) ? parts().inputs.window_mask : parts().inputs.mask;
  CHECK(mask != nullptr);
  const HeadsConfig& heads = config().heads_of(layer);
  const bool is_latent = config().latent.n > 0;
  const int64_t n_value = is_latent ? config().latent.n : heads.dim;
  const Attention attention{.q = ggml_permute(context(), queries, 0, 2, 1, 3),
                            .k = cell_view(parts().cache.keys(layer), heads, heads.dim),
                            .v = cell_view(parts().cache.values(layer), heads, n_value),
                            .mask = mask,
                            .sinks = this->layer(layer).attention.sinks,
                            .scale = config().attention_scale,
                            .soft_cap = config().attention_softcap};
  ggml_tensor* out = use_flash_attention_ ? flash_attention(attention) : plain_attention(attention);
  if (is_latent) return latent_values(layer, out);
  return ggml_reshape_2d(context(), out, heads.n_embd_q(), queries->ne[2]);
}

ggml_tensor* GgmlGraphBuilder::latent_queries(int layer, ggml_tensor* states) {
  const AttentionWeights& attention = this->layer(layer).attention;
  const LatentWeights& weights = *attention.latent;
  const LatentConfig& latent = config().latent;
  const int64_t n_rows = states->ne[1], n_heads = config().heads.n;
  ggml_tensor* x = norm(states, attention.norm);
  ggml_tensor* read =
      weights.query_down.weight != nullptr ? norm(linear(weights.query_down, x), weights.query_norm) : x;
  ggml_tensor* queries = ggml_reshape_3d(context(), linear(weights.query, read),
                                         latent.n_query + latent.n_rotated, n_heads, n_rows);
  const auto part = [&](ggml_tensor* of, int64_t first, int64_t n, int64_t n_parts) {
    return ggml_view_3d(context(), of, n, n_parts, n_rows, n_parts > 1 ? of->nb[1] : of->nb[0] * n,
                        n_parts > 1 ? of->nb[2] : of->nb[1], static_cast<size_t>(first) * of->nb[0]);
  };
  ggml_tensor* turned = rope(part(queries, latent.n_query, latent.n_rotated, n_heads), layer);
  ggml_tensor* compared = ggml_permute(context(), part(queries, 0, latent.n_query, n_heads), 0, 2, 1, 3);
  compared = ggml_mul_mat(context(), weights.query_up.weight, compared);  // [n, n_rows, n_heads]
  ggml_tensor* q = ggml_concat(context(), ggml_permute(context(), compared, 0, 2, 1, 3), turned, 0);
  if (config().query_scale != 1.0f) q = ggml_scale(context(), q, config().query_scale);

  ggml_tensor* down = linear(weights.down, x);  // [n + n_rotated, n_rows]
  ggml_tensor* numbers = norm(part(down, 0, latent.n, 1), weights.norm);
  ggml_tensor* key = rope(part(down, latent.n, latent.n_rotated, 1), layer);
  expand(q);
  store(parts().cache.keys(layer), ggml_concat(context(), numbers, key, 0));
  return q;
}

ggml_tensor* GgmlGraphBuilder::latent_values(int layer, ggml_tensor* out) {
  const LatentWeights& weights = *this->layer(layer).attention.latent;
  const int64_t n_rows = out->ne[2];
  ggml_tensor* each = ggml_permute(context(), out, 0, 2, 1, 3);                  // [n, n_rows, n_heads]
  ggml_tensor* values = ggml_mul_mat(context(), weights.value_up.weight, each);  // [n_value, n_rows, ...
  values = ggml_cont(context(), ggml_permute(context(), values, 0, 2, 1, 3));
  return ggml_reshape_2d(context(), values, values->ne[0] * values->ne[1], n_rows);
}

ggml_tensor* GgmlGraphBuilder::flash_attention(const Attention& a) {
  ggml_tensor* out = ggml_flash_attn_ext(context(), a.q, a.k, a.v, a.mask, a.scale, 0.0f, a.soft_cap);
  ggml_flash_attn_ext_add_sinks(out, a.sinks);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  return out;  // [head_dim, n_heads, n_rows]
}

// For devices whose flash attention does not take this head size or cache type.
ggml_tensor* GgmlGraphBuilder::plain_attention(const Attention& a) {
  ggml_tensor* scores = ggml_mul_mat(context(), a.k, a.q);  // [n_kv, n_rows, n_heads]
  ggml_prec_set_acc(scores, GGML_PREC_F32);
  float scale = a.scale;
  if (a.soft_cap > 0.0f) {
    scores = ggml_tanh(context(), ggml_scale(context(), scores, a.scale / a.soft_cap));
    scale = a.soft_cap;
  }
  ggml_tensor* shares = ggml_soft_max_ext(context(), scores, a.mask, scale, 0.0f);
  ggml_soft_max_add_sinks(shares, a.sinks);
  ggml_tensor* v = ggml_is_quantized(a.v->type) ? ggml_cast(context(), a.v, GGML_TYPE_F32) : a.v;
  ggml_tensor* values =
      ggml_cont(context(), ggml_transpose(context(), v));                 // [n_kv, head_dim, n_kv_heads]
  ggml_tensor* out = ggml_mul_mat(context(), values, shares);             // [head_dim, n_rows, n_heads]
  return ggml_cont(context(), ggml_permute(context(), out, 0, 2, 1, 3));  // [head_dim, n_heads, n_rows]
}

ggml_tensor* GgmlGraphBuilder::activated(ggml_tensor* x) {
  switch (config().activation) {
    case Activation::kSilu: return ggml_silu(context(), x);
    case Activation::kGelu: return ggml_gelu(context(), x);
    case Activation::kReluSquared: return ggml_sqr(context(), ggml_relu(context(), x));
    case Activation::kLimitedSwish: break;  // of gates alone
  }
  CHECK(false);
  return nullptr;
}

ggml_tensor* GgmlGraphBuilder::activated(ggml_tensor* gate, ggml_tensor* up) {
  switch (config().activation) {
    case Activation::kSilu: return ggml_swiglu_split(context(), gate, up);
    case Activation::kGelu: return ggml_geglu_split(context(), gate, up);
    case Activation::kLimitedSwish: return ggml_swiglu_oai(context(), gate, up, kSwishSlope, kGateLimit);
    default: return ggml_mul(context(), activated(gate), up);
  }
}

ggml_tensor* GgmlGraphBuilder::gated(const MlpWeights& mlp, ggml_tensor* states) {
  ggml_tensor* x = norm(states, mlp.norm);
  ggml_tensor* up = linear(mlp.up, x);
  return mlp.gate.weight == nullptr ? activated(up) : activated(linear(mlp.gate, x), up);
}

ggml_tensor* GgmlGraphBuilder::contribute(const Linear& projection, ggml_tensor* x,
                                          const Norm& post_norm, ggml_tensor* states) {
  return ggml_add(context(), norm(linear(projection, x), post_norm), states);
}

ggml_tensor* GgmlGraphBuilder::per_layer(ggml_tensor* rows) {
  ggml_tensor*& found = per_layer_[rows];
  if (found != nullptr) return found;
  const PerLayerInputs& weights = *parts().weights.per_layer;
  const auto of_rows = [&](ggml_tensor* x) {
    return rows == nullptr ? x : ggml_get_rows(context(), x, rows);
  };
  ggml_tensor* of_table = of_rows(parts().inputs.per_layer);
  ggml_tensor* projected = linear(weights.projection, of_rows(parts().inputs.embeddings));
  const int64_t n = config().n_embd_per_layer, n_rows = of_table->ne[1];
  const auto by_layer = [&](ggml_tensor* x) {
    return ggml_reshape_3d(context(), x, n, config().n_layers, n_rows);
  };
  ggml_tensor* sum = ggml_add(context(), norm(by_layer(projected), weights.norm), by_layer(of_table));
  sum = ggml_scale(context(), sum, std::numbers::sqrt2_v<float> / 2);
  return found = ggml_cont(context(), ggml_permute(context(), sum, 0, 2, 1, 3));
}

ggml_tensor* GgmlGraphBuilder::add_per_layer(int layer, ggml_tensor* states, ggml_tensor* rows) {
  const PerLayerWeights& weights = *this->layer(layer).per_layer;
  ggml_tensor* all = per_layer(rows);
  ggml_tensor* own = ggml_view_2d(context(), all, all->ne[0], all->ne[1], all->nb[1],
                                  static_cast<size_t>(layer) * all->nb[2]);
  return contribute(weights.projection, activated(linear(weights.gate, states), own), weights.post_norm,
                    states);
}

ggml_tensor* GgmlGraphBuilder::scaled(ggml_tensor* states, ggml_tensor* factor) {
  return ggml_mul(context(), states, factor);
}

ggml_tensor* GgmlGraphBuilder::head(ggml_tensor* states) {
  ggml_tensor* logits = linear(parts().weights.head, norm(states, parts().weights.output_norm));
  const float cap = config().logit_softcap;
  if (cap <= 0.0f) return logits;
  logits = ggml_scale(context(), logits, 1.0f / cap);
  return ggml_scale(context(), ggml_tanh(context(), logits), cap);
}

ggml_tensor* GgmlGraphBuilder::copy_rows(ggml_tensor* states, ggml_tensor* rows) {
  return rows == nullptr ? ggml_cont(context(), states) : ggml_get_rows(context(), states, rows);
}

}  // namespace forerun
