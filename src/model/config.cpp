#include "model/config.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "model/config_heads.h"
#include "model/layer_set.h"

namespace forerun {
namespace {

int read_rope_dims(const ConfigReader& reader, const std::string& name, int head_dim) {
  const int n_dims = reader.get_count_or(name, head_dim);
  if (n_dims > head_dim || n_dims % 2 != 0) {
    fail(ErrorCode::kInvalidFile, "{} of {} does not fit heads of {}", reader.key(name), n_dims,
         head_dim);
  }
  return n_dims;
}

RopeConfig read_rope(const ConfigReader& reader, const ModelConfig& config, RopeLayout layout) {
  RopeConfig rope;
  rope.layout = layout;
  rope.n_dims = read_rope_dims(reader, "rope.dimension_count", config.heads.dim);
  rope.n_ctx_original = reader.get_count_or("rope.scaling.original_context_length", config.n_ctx_train);
  rope.freq_base = reader.get_float_or("rope.freq_base", 10000.0f);
  if (rope.freq_base <= 0.0f)
    fail(ErrorCode::kInvalidFile, "{} must be positive", reader.key("rope.freq_base"));

  const std::string scaling =
      reader.metadata().get_string(reader.key("rope.scaling.type")).value_or("linear");
  if (scaling != "none" && scaling != "linear" && scaling != "yarn") {
    fail(ErrorCode::kUnsupported,
         "RoPE scaling '{}' is not supported (none, linear, yarn and Llama 3 factors are)", scaling);
  }
  const float factor =
      reader.get_float_or("rope.scaling.factor", reader.get_float_or("rope.scale_linear", 0.0f));
  if (factor < 0.0f)
    fail(ErrorCode::kInvalidFile, "{} must be positive", reader.key("rope.scaling.factor"));
  if (scaling != "none" && factor > 0.0f) rope.freq_scale = 1.0f / factor;
  rope.attn_factor = reader.get_float_or("rope.scaling.attn_factor", 1.0f);
  if (scaling == "yarn") {
    // ggml multiplies attention by 1 + 0.1 ln(1 / freq_scale) whenever ext_factor is
    // set, which is YaRN's own magnitude correction; below a factor of 1 YaRN has none.
    rope.ext_factor = 1.0f;
    if (rope.freq_scale > 1.0f) rope.attn_factor /= 1.0f + 0.1f * std::log(1.0f / rope.freq_scale);
  }
  return rope;
}

ExpertsConfig read_experts(const ConfigReader& reader, const ModelConfig& config) {
  ExpertsConfig experts;
  if (reader.metadata().get_int(reader.key("expert_count")).value_or(0) <= 1) return experts;
  experts.n_all = reader.get_count("expert_count");
  experts.n_used = reader.get_count("expert_used_count");
  experts.n_ff = reader.get_count_or("expert_feed_forward_length", config.n_ff);
  if (experts.n_used > experts.n_all) {
    fail(ErrorCode::kInvalidFile, "{} experts of {} cannot be used", experts.n_used, experts.n_all);
  }
  if (experts.n_all > ExpertsConfig::kMost || experts.n_used > ExpertsConfig::kMostUsed) {
    fail(ErrorCode::kUnsupported, "a mixture that uses {} of {} experts is too large", experts.n_used,
         experts.n_all);
  }
  if (experts.n_ff % kMatrixGrain != 0 || config.n_embd % kMatrixGrain != 0) {
    fail(ErrorCode::kUnsupported, "experts of {} x {} are not supported: both must be multiples of {}",
         config.n_embd, experts.n_ff, kMatrixGrain);
  }
  if (reader.metadata().get_int(reader.key("expert_group_count")).value_or(1) > 1) {
    fail(ErrorCode::kUnsupported, "experts in groups are not supported");
  }
  return experts;
}

}  // namespace

ModelConfig read_config(const GgufMetadata& metadata, RopeLayout layout, NormKind norm_kind) {
  ModelConfig config = read_mixture_config(metadata, layout, norm_kind);
  if (config.experts.n_all > 0) {
    fail(ErrorCode::kUnsupported, "mixtures of experts are not supported in {} models",
         config.architecture);
  }
  return config;
}

ModelConfig read_mixture_config(const GgufMetadata& metadata, RopeLayout layout, NormKind norm_kind,
                                LayerKinds kinds) {
  ModelConfig config;
  config.architecture = metadata.get_string("general.architecture").value_or("");
  config.name = metadata.get_string("general.name").value_or("");
  const ConfigReader reader(metadata, config.architecture);

  config.n_layers = reader.get_count("block_count");
  if (config.n_layers > LayerSet::kMaxLayers) {
    fail(ErrorCode::kUnsupported, "the model has {} layers; forerun supports up to {}", config.n_layers,
         LayerSet::kMaxLayers);
  }
  if (!metadata.get_bool(reader.key("attention.causal")).value_or(true)) {
    fail(ErrorCode::kUnsupported, "models whose tokens see those behind them are not supported");
  }
  config.n_embd = reader.get_count("embedding_length");
  config.n_ctx_train = reader.get_count("context_length");
  if (kinds == LayerKinds::kWindowedDiffer) {
    read_windowed_kind(reader, config);
  } else {
    config.n_ff = reader.get_uniform_count("feed_forward_length", std::nullopt);
    if (kinds == LayerKinds::kLatent) {
      read_latent(reader, config);
    } else {
      config.heads = read_heads(reader, config.n_embd);
    }
  }
  config.norm_kind = norm_kind;
  const std::string eps = norm_kind == NormKind::kLayer ? "attention.layer_norm_epsilon"
                                                        : "attention.layer_norm_rms_epsilon";
  config.norm_eps = reader.get_float(eps);
  if (config.norm_eps < 0.0f) fail(ErrorCode::kInvalidFile, "{} must not be negative", reader.key(eps));
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.heads.dim));
  config.rope = read_rope(reader, config, layout);
  if (config.window_heads) {
    config.window_rope = config.rope;
    config.window_rope.n_dims =
        read_rope_dims(reader, "rope.dimension_count_swa", config.window_heads->dim);
    config.window_rope.freq_base = read_window_freq_base(reader, config.rope.freq_base);
  }
  config.experts = read_experts(reader, config);
  return config;
}

std::vector<bool> read_window_pattern(const ConfigReader& reader, int n_layers, int period) {
  const std::string key = reader.key("attention.sliding_window_pattern");
  std::vector<bool> windowed(static_cast<size_t>(n_layers));
  if (reader.metadata().is_array(key)) {
    const auto flags = reader.metadata().get_int_array(key).value();
    if (flags.size() < windowed.size()) {
      fail(ErrorCode::kInvalidFile, "metadata key {} has {} entries for {} layers", key, flags.size(),
           n_layers);
    }
    for (size_t i = 0; i < windowed.size(); ++i) windowed[i] = flags[i] != 0;
    return windowed;
  }
  const int64_t chosen = reader.metadata().get_int(key).value_or(period);
  if (chosen < 0) fail(ErrorCode::kInvalidFile, "metadata key {} must not be negative", key);
  for (size_t i = 0; i < windowed.size(); ++i) {
    windowed[i] = chosen == 0 || static_cast<int64_t>(i) % chosen < chosen - 1;
  }
  return windowed;
}

float read_window_freq_base(const ConfigReader& reader, float otherwise) {
  const float base = reader.get_float_or("rope.freq_base_swa", otherwise);
  if (base <= 0.0f)
    fail(ErrorCode::kInvalidFile, "{} must be positive", reader.key("rope.freq_base_swa"));
  return base;
}

int ModelConfig::cells_layer(int layer) const {
  if (!first_sharing_cells || layer < *first_sharing_cells) return layer;
  int donor = *first_sharing_cells - 1;
  while (donor > 0 && is_windowed(donor) != is_windowed(layer)) --donor;
  return donor;
}

int64_t ModelConfig::n_cell_numbers() const {
  int64_t n = 0;
  for (int layer = 0; layer < n_layers; ++layer) n += has_cells(layer) ? n_cell_numbers(layer) : 0;
  return n;
}

float ModelConfig::temperature(int position) const {
  if (temperature_scale == 0.0f) return 1.0f;
  const int n_begun = (position + temperature_offset) / temperature_length + 1;
  return 1.0f + temperature_scale * static_cast<float>(std::log(static_cast<double>(n_begun)));
}

RopeStretch RopeConfig::stretch() const {
  float dims[2];
  ggml_rope_yarn_corr_dims(n_dims, n_ctx_original, freq_base, beta_fast, beta_slow, dims);
  float magnitude = attn_factor;
  if (ext_factor != 0.0f) magnitude *= 1.0f + 0.1f * std::log(1.0f / freq_scale);
  return {.low_dim = dims[0], .high_dim = dims[1], .magnitude = magnitude};
}

}  // namespace forerun
