#include "model/graph_builder.h"

#include "core/check.h"

namespace forerun {

GraphBuilder::GraphBuilder(Target target, const ModelConfig& config, const ModelWeights& weights,
                           const KvCache& cache, const PassInputs& inputs, bool use_flash_attention)
    : target_(target),
      config_(config),
      weights_(weights),
      cache_(cache),
      inputs_(inputs),
      use_flash_attention_(use_flash_attention) {}

ggml_tensor* GraphBuilder::norm(ggml_tensor* x, ggml_tensor* weight) {
  return ggml_mul(context(), ggml_rms_norm(context(), x, config_.norm_eps), weight);
}

ggml_tensor* GraphBuilder::linear(const Linear& linear, ggml_tensor* x) {
  ggml_tensor* y = ggml_mul_mat(context(), linear.weight, x);
  if (linear.scale != nullptr) y = ggml_mul(context(), y, linear.scale);
  if (linear.bias != nullptr) y = ggml_add(context(), y, linear.bias);
  return y;
}

ggml_tensor* GraphBuilder::add(ggml_tensor* a, ggml_tensor* b) {
  return ggml_add(context(), a, b);
}

GraphBuilder::QueryKeyValue GraphBuilder::project(const AttentionWeights& attention, ggml_tensor* x) {
  const int64_t dim = config_.head_dim;
  const int64_t n_rows = x->ne[1];
  if (attention.qkv.weight == nullptr) {
    const auto heads = [&](const Linear& projection, int n_heads) {
      return ggml_reshape_3d(context(), linear(projection, x), dim, n_heads, n_rows);
    };
    return {.q = heads(attention.q, config_.n_heads),
            .k = heads(attention.k, config_.n_kv_heads),
            .v = heads(attention.v, config_.n_kv_heads)};
  }
  ggml_tensor* fused = linear(attention.qkv, x);  // [n_embd_q + 2 n_embd_kv, n_rows]
  const auto heads = [&](int n_heads, int64_t first, ggml_tensor* bias) {
    const size_t size = ggml_element_size(fused);
    ggml_tensor* view =
        ggml_view_3d(context(), fused, dim, n_heads, n_rows, static_cast<size_t>(dim) * size,
                     fused->nb[1], static_cast<size_t>(first) * size);
    return bias == nullptr ? view
                           : ggml_add(context(), view, ggml_reshape_2d(context(), bias, dim, n_heads));
  };
  return {.q = heads(config_.n_heads, 0, attention.q.bias),
          .k = heads(config_.n_kv_heads, config_.n_embd_q(), attention.k.bias),
          .v = heads(config_.n_kv_heads, config_.n_embd_q() + config_.n_embd_kv(), attention.v.bias)};
}

ggml_tensor* GraphBuilder::rope(ggml_tensor* heads, int layer) {
  const RopeConfig& rope = config_.rope_of(layer);
  const int mode = rope.layout == RopeLayout::kHalves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
  return ggml_rope_ext(context(), heads, inputs_.positions, weights_.rope_factors, rope.n_dims, mode,
                       rope.n_ctx_original, rope.freq_base, rope.freq_scale, rope.ext_factor,
                       rope.attn_factor, rope.beta_fast, rope.beta_slow);
}

// The first n_kv cells of a layer's keys or values as [head_dim, n_kv, n_kv_heads].
ggml_tensor* GraphBuilder::cell_view(ggml_tensor* cache, int64_t n_kv) {
  ggml_tensor* view = ggml_view_3d(context(), cache, config_.head_dim, config_.n_kv_heads, n_kv,
                                   ggml_row_size(cache->type, config_.head_dim),
                                   ggml_row_size(cache->type, cache->ne[0]), 0);
  return ggml_permute(context(), view, 0, 2, 1, 3);
}

ggml_tensor* GraphBuilder::attend(int layer, const QueryKeyValue& qkv) {
  // In this order: backends fuse a rotation with the store that follows it.
  expand(qkv.q);
  expand(qkv.v);
  expand(qkv.k);
  const auto store = [&](ggml_tensor* cache, ggml_tensor* heads) {
    ggml_tensor* rows =
        ggml_view_2d(context(), heads, config_.n_embd_kv(), heads->ne[2], heads->nb[2], 0);
    expand(ggml_set_rows(context(), cache, rows, inputs_.cells));
  };
  store(cache_.keys(layer), qkv.k);
  store(cache_.values(layer), qkv.v);

  ggml_tensor* mask = config_.is_windowed(layer) ? inputs_.window_mask : inputs_.mask;
  CHECK(mask != nullptr);
  const int64_t n_kv = mask->ne[0];
  const Attention attention{.q = ggml_permute(context(), qkv.q, 0, 2, 1, 3),
                            .k = cell_view(cache_.keys(layer), n_kv),
                            .v = cell_view(cache_.values(layer), n_kv),
                            .mask = mask,
                            .scale = config_.attention_scale};
  ggml_tensor* out = use_flash_attention_ ? flash_attention(attention) : plain_attention(attention);
  return ggml_reshape_2d(context(), out, config_.n_embd_q(), qkv.q->ne[2]);
}

ggml_tensor* GraphBuilder::flash_attention(const Attention& a) {
  ggml_tensor* out = ggml_flash_attn_ext(context(), a.q, a.k, a.v, a.mask, a.scale, 0.0f, 0.0f);
  ggml_prec_set_acc(out, GGML_PREC_F32);
  return out;  // [head_dim, n_heads, n_rows]
}

// For devices whose flash attention does not take this head size or cache type.
ggml_tensor* GraphBuilder::plain_attention(const Attention& a) {
  ggml_tensor* scores = ggml_mul_mat(context(), a.k, a.q);  // [n_kv, n_rows, n_heads]
  ggml_prec_set_acc(scores, GGML_PREC_F32);
  ggml_tensor* shares = ggml_soft_max_ext(context(), scores, a.mask, a.scale, 0.0f);
  ggml_tensor* v = ggml_is_quantized(a.v->type) ? ggml_cast(context(), a.v, GGML_TYPE_F32) : a.v;
  ggml_tensor* values =
      ggml_cont(context(), ggml_transpose(context(), v));                 // [n_kv, head_dim, n_kv_heads]
  ggml_tensor* out = ggml_mul_mat(context(), values, shares);             // [head_dim, n_rows, n_heads]
  return ggml_cont(context(), ggml_permute(context(), out, 0, 2, 1, 3));  // [head_dim, n_heads, n_rows]
}

ggml_tensor* GraphBuilder::gated_mlp(const MlpWeights& mlp, ggml_tensor* x) {
  ggml_tensor* up = linear(mlp.up, x);
  ggml_tensor* gate = linear(mlp.gate, x);
  ggml_tensor* gated = config_.activation == Activation::kGelu ? ggml_geglu_split(context(), gate, up)
                                                               : ggml_swiglu_split(context(), gate, up);
  return linear(mlp.down, gated);
}

ggml_tensor* GraphBuilder::head(ggml_tensor* x) {
  ggml_tensor* logits = linear(weights_.head, norm(x, weights_.output_norm));
  if (config_.logit_softcap > 0.0f) {
    logits = ggml_scale(context(), logits, 1.0f / config_.logit_softcap);
    logits = ggml_scale(context(), ggml_tanh(context(), logits), config_.logit_softcap);
  }
  return logits;
}

}  // namespace forerun
