#include "model/arch/architecture.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

// A linear map whose results are multiplied by a number of the model.
Linear scaled(WeightLoader& loader, Linear linear, float scale) {
  if (scale == 1.0f) return linear;
  if (linear.scale != nullptr || linear.bias != nullptr) {
    fail(ErrorCode::kUnsupported, "scales or biases of blocks whose contributions are scaled, too");
  }
  linear.scale = loader.constant(scale);
  return linear;
}

LatentWeights declare_latent(WeightLoader& loader, const ModelConfig& config,
                             const std::string& prefix) {
  const LatentConfig& latent = config.latent;
  const int64_t n_heads = config.heads.n, n_queries = n_heads * (latent.n_query + latent.n_rotated);
  LatentWeights weights;
  if (latent.n_down > 0) {
    weights.query_down = loader.linear(prefix + "attn_q_a", config.n_embd, latent.n_down);
    weights.query_norm = declare_norm(loader, config, prefix + "attn_q_a_norm", latent.n_down);
    weights.query = loader.linear(prefix + "attn_q_b", latent.n_down, n_queries);
  } else {
    weights.query = loader.linear(prefix + "attn_q", config.n_embd, n_queries);
  }
  weights.down =
      loader.linear(prefix + "attn_kv_a_mqa", config.n_embd, int64_t{latent.n} + latent.n_rotated);
  weights.norm = declare_norm(loader, config, prefix + "attn_kv_a_norm", latent.n);
  weights.query_up = loader.stack(prefix + "attn_k_b", latent.n_query, latent.n, n_heads);
  weights.value_up = loader.stack(prefix + "attn_v_b", latent.n, latent.n_value, n_heads);
  return weights;
}

AttentionWeights declare_attention(WeightLoader& loader, const ModelConfig& config, int layer) {
  const std::string prefix = layer_prefix(layer);
  const HeadsConfig& heads = config.heads_of(layer);
  AttentionWeights attention;
  if (config.has_block_norms)
    attention.norm = declare_norm(loader, config, prefix + "attn_norm", config.n_embd);
  if (config.latent.n > 0) {
    attention.latent = declare_latent(loader, config, prefix);
  } else if (loader.has(prefix + "attn_qkv.weight")) {
    attention.qkv =
        loader.linear(prefix + "attn_qkv", config.n_embd, heads.n_embd_q() + 2 * heads.n_embd_kv());
    if (attention.qkv.bias == nullptr) {
      attention.q.bias = loader.optional_vector(prefix + "attn_q.bias", heads.n_embd_q());
      attention.k.bias = loader.optional_vector(prefix + "attn_k.bias", heads.n_embd_kv());
      attention.v.bias = loader.optional_vector(prefix + "attn_v.bias", heads.n_embd_kv());
    }
  } else {
    attention.q = loader.linear(prefix + "attn_q", config.n_embd, heads.n_embd_q());
    if (config.has_cells(layer)) {
      attention.k = loader.linear(prefix + "attn_k", config.n_embd, heads.n_embd_kv());
      const bool may_reuse_keys = config.may_reuse_keys && !config.is_windowed(layer);
      if (!may_reuse_keys || loader.has(prefix + "attn_v.weight"))
        attention.v = loader.linear(prefix + "attn_v", config.n_embd, heads.n_embd_kv());
    }
  }
  const int64_t n_read =
      config.latent.n > 0 ? int64_t{heads.n} * config.latent.n_value : heads.n_embd_q();
  attention.out = scaled(loader, loader.linear(prefix + "attn_output", n_read, config.n_embd),
                         config.residual_scale);
  if (config.has_sinks) attention.sinks = loader.vector(prefix + "attn_sinks.weight", heads.n);
  return attention;
}

MlpWeights declare_mlp(WeightLoader& loader, const ModelConfig& config, int layer,
                       std::string_view norm) {
  const std::string prefix = layer_prefix(layer);
  const int n_ff = config.n_ff_of(layer);
  MlpWeights mlp;
  if (config.has_block_norms && !config.has_parallel_blocks)
    mlp.norm = declare_norm(loader, config, prefix + std::string(norm), config.n_embd);
  const std::string up = prefix + "ffn_up.weight";
  if (config.has_gates && !loader.has(prefix + "ffn_gate.weight") &&
      loader.n_rows(up) == 2 * int64_t{n_ff}) {
    mlp.gate = loader.half(up, 0, config.n_embd, n_ff);
    mlp.up = loader.half(up, 1, config.n_embd, n_ff);
  } else {
    if (config.has_gates) mlp.gate = loader.linear(prefix + "ffn_gate", config.n_embd, n_ff);
    mlp.up = loader.linear(prefix + "ffn_up", config.n_embd, n_ff);
  }
  mlp.down =
      scaled(loader, loader.linear(prefix + "ffn_down", n_ff, config.n_embd), config.residual_scale);
  return mlp;
}

// `shared`: what the names of the MLP that all tokens use end with.
MlpWeights declare_mixture(WeightLoader& loader, const ModelConfig& config, int layer,
                           std::string_view norm, std::string_view shared) {
  const std::string prefix = layer_prefix(layer);
  const ExpertsConfig& experts = config.experts;
  MlpWeights mlp;
  mlp.norm = declare_norm(loader, config, prefix + std::string(norm), config.n_embd);
  const int64_t n = experts.n_all;
  const std::string router = prefix + "ffn_gate_inp";
  ExpertWeights& made = mlp.experts.emplace();
  made.router = experts.has_norms ? loader.decisive_matrix(router + ".weight", config.n_embd, n)
                                  : loader.decisive_linear(router, config.n_embd, n);
  made.preference = loader.optional_vector(prefix + "exp_probs_b.bias", n);
  made.scales = loader.optional_vector(prefix + "ffn_down_exps.scale", n);
  made.down = loader.stack(prefix + "ffn_down_exps", experts.n_ff, config.n_embd, n);
  if (loader.has(prefix + "ffn_gate_up_exps.weight")) {
    made.gate_up =
        loader.stack(prefix + "ffn_gate_up_exps", config.n_embd, 2 * int64_t{experts.n_ff}, n);
  } else {
    made.gate = loader.stack(prefix + "ffn_gate_exps", config.n_embd, experts.n_ff, n);
    made.up = loader.stack(prefix + "ffn_up_exps", config.n_embd, experts.n_ff, n);
  }
  if (experts.has_norms) {
    const auto declare = [&](const char* name) {
      return declare_norm(loader, config, prefix + name, config.n_embd);
    };
    Norm of_router{.kind = config.norm_kind};
    of_router.weight = loader.vector(router + ".scale", config.n_embd);
    made.norms = {.router = of_router,
                  .experts = declare("pre_ffw_norm_2"),
                  .made = declare("post_ffw_norm_2"),
                  .shared = declare("post_ffw_norm_1")};
    // What the router reads is divided by the root of its width, too.
    made.router.scale = loader.constant(1.0f / std::sqrt(static_cast<float>(config.n_embd)));
  }
  if (experts.n_ff_shared == 0) return mlp;
  const auto linear = [&](const char* name, int64_t n_in, int64_t n_out) {
    return loader.linear(fmt::format("{}{}{}", prefix, name, shared), n_in, n_out);
  };
  mlp.gate = linear("ffn_gate", config.n_embd, experts.n_ff_shared);
  mlp.up = linear("ffn_up", config.n_embd, experts.n_ff_shared);
  mlp.down = linear("ffn_down", experts.n_ff_shared, config.n_embd);
  if (experts.weighs_shared) {
    made.shared_share = loader.decisive_linear(prefix + "ffn_gate_inp_shexp", config.n_embd, 1);
  }
  return mlp;
}

void declare_post_norms(WeightLoader& loader, const ModelConfig& config, const std::string& prefix,
                        LayerWeights& weights) {
  weights.attention.post_norm =
      declare_norm(loader, config, prefix + "post_attention_norm", config.n_embd);
  weights.mlp.post_norm = declare_norm(loader, config, prefix + "post_ffw_norm", config.n_embd);
}

}  // namespace

std::span<const Architecture* const> architectures() {
  static const auto all = [] {
    std::vector<const Architecture*> found = {
        &llama_architecture(),   &qwen3_architecture(),     &qwen3vl_architecture(),
        &gemma_architecture(),   &gemma2_architecture(),    &gemma3_architecture(),
        &gemma4_architecture(),  &glm4_architecture(),      &phi3_architecture(),
        &minicpm_architecture(), &smollm3_architecture(),   &olmo2_architecture(),
        &exaone4_architecture(), &deepseek2_architecture(), &hunyuan_architecture(),
        &llama4_architecture(),  &maincoder_architecture(), &mistral3_architecture(),
        &arcee_architecture(),   &gpt_oss_architecture(),
    };
    for (const auto& several :
         {llama_by_other_names(), layer_norm_architectures(), cohere_architectures(),
          granite_architectures(), mixture_architectures()}) {
      found.insert(found.end(), several.begin(), several.end());
    }
    return found;
  }();
  return all;
}

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* architecture : architectures()) {
    if (architecture->name() == name) return architecture;
  }
  return nullptr;
}

ggml_tensor* Architecture::attention(GraphBuilder& graph, int layer, ggml_tensor* states) const {
  const AttentionWeights& weights = graph.layer(layer).attention;
  ggml_tensor* attended = graph.attend(layer, graph.queries(layer, states));
  return graph.contribute(weights.out, attended, weights.post_norm, states);
}

ggml_tensor* Architecture::mlp(GraphBuilder& graph, int layer, const RowStream& rows) const {
  const MlpWeights& weights = graph.layer(layer).mlp;
  if (weights.experts) return graph.mixture(weights, rows.states);
  ggml_tensor* read = graph.config().has_parallel_blocks ? rows.entered : rows.states;
  return graph.contribute(weights.down, graph.gated(weights, read), weights.post_norm, rows.states);
}

void require_text_sections(const GgufMetadata& metadata, std::string_view architecture) {
  // The fourth axis is none of a text's: what is rotated by it would stand still.
  const std::string key = fmt::format("{}.rope.dimension_sections", architecture);
  if (!metadata.is_array(key)) return;
  const auto sections = metadata.get_int_array(key).value();
  if (sections.size() > 3 && sections[3] != 0)
    fail(ErrorCode::kUnsupported, "rotation by a fourth axis ({}) is not supported", key);
}

void require_whole_rotation(const ModelConfig& config) {
  if (config.rope.n_dims == config.heads.dim) return;
  fail(ErrorCode::kUnsupported, "heads that rotate in part are not supported in {} models",
       config.architecture);
}

float read_cap(const ConfigReader& reader, const char* name, float otherwise) {
  const float cap = reader.get_float_or(name, otherwise);
  if (cap < 0.0f) fail(ErrorCode::kInvalidFile, "{} must not be negative", reader.key(name));
  return cap;
}

std::string layer_prefix(int layer) {
  return fmt::format("blk.{}.", layer);
}

Norm declare_norm(WeightLoader& loader, const ModelConfig& config, const std::string& name, int64_t n) {
  Norm norm{.kind = config.norm_kind};
  if (config.has_norm_weights) norm.weight = loader.vector(name + ".weight", n);
  if (config.norm_kind == NormKind::kLayer) norm.bias = loader.optional_vector(name + ".bias", n);
  return norm;
}

void declare_head_norms(WeightLoader& loader, const ModelConfig& config, int layer,
                        AttentionWeights& attention) {
  const HeadsConfig& heads = config.heads_of(layer);
  const bool together = config.head_norms == HeadNorms::kTogether;
  if (together && attention.qkv.weight != nullptr && attention.q.bias != nullptr)
    fail(ErrorCode::kUnsupported, "biases apart from their matrix, and norms of all heads at once, too");
  const auto declare = [&](const char* name, int64_t n_all) {
    return declare_norm(loader, config, layer_prefix(layer) + name, together ? n_all : heads.dim);
  };
  attention.q_norm = declare("attn_q_norm", heads.n_embd_q());
  if (config.has_cells(layer)) attention.k_norm = declare("attn_k_norm", heads.n_embd_kv());
}

LayerWeights Architecture::declare_layer(WeightLoader& loader, const ModelConfig& config,
                                         int layer) const {
  const std::string prefix = layer_prefix(layer);
  LayerWeights weights{.attention = declare_attention(loader, config, layer),
                       .mlp = config.has_experts(layer)
                                  ? declare_mixture(loader, config, layer, mlp_norm(), shared_mlp())
                                  : declare_mlp(loader, config, layer, mlp_norm()),
                       .per_layer = {}};
  if (config.has_parallel_blocks) weights.mlp.norm = weights.attention.norm;
  if (config.has_head_norms) declare_head_norms(loader, config, layer, weights.attention);
  if (config.has_post_norms) declare_post_norms(loader, config, prefix, weights);
  return weights;
}

}  // namespace forerun
