// Mixtures of experts whose attention is a dense family's: Qwen 2 and 3, OLMoE, ERNIE 4.5, GLM 4.5.
// (Mixtral is Llama's by name, Granite's have its scales, and gpt-oss has more that is its own:
// llama.cpp, granite.cpp, gpt_oss.cpp.)
#include <algorithm>
#include <array>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

// Where a file does not say how large experts are, those that a token uses are as large as an MLP.
void default_to_shares_of_mlp(const ConfigReader& reader, ModelConfig& config) {
  if (reader.metadata().has(reader.key("expert_feed_forward_length"))) return;
  config.experts.n_ff = std::max(1, config.n_ff / std::max(1, config.experts.n_used));
}

ExpertGating gating_of(int number) {
  constexpr int kSoftmax = 1, kSigmoid = 2, kSoftmaxOfChosen = 3;  // as files have them
  if (number == kSoftmax) return ExpertGating::kSoftmax;
  if (number == kSigmoid) return ExpertGating::kSigmoid;
  if (number == kSoftmaxOfChosen) return ExpertGating::kSoftmaxOfChosen;
  fail(ErrorCode::kUnsupported, "experts that are weighed in way {} are not supported", number);
}

class Qwen2Moe final : public Architecture {
 public:
  std::string_view name() const override { return "qwen2moe"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    default_to_shares_of_mlp(reader, config);
    config.experts.n_ff_shared = reader.get_count_or("expert_shared_feed_forward_length", config.n_ff);
    config.experts.weighs_shared = true;
    config.experts.normalises = false;
    return config;
  }
};

class Qwen3Moe final : public Architecture {
 public:
  std::string_view name() const override { return "qwen3moe"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kHalves);
    default_to_shares_of_mlp(ConfigReader(metadata, config.architecture), config);
    config.has_head_norms = true;
    return config;
  }
};

class OlMoe final : public Architecture {
 public:
  std::string_view name() const override { return "olmoe"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kHalves);
    config.has_head_norms = true;
    config.head_norms = HeadNorms::kTogether;
    config.experts.n_ff = config.n_ff;
    config.experts.normalises = false;
    return config;
  }
};

class Ernie45Moe final : public Architecture {
 public:
  std::string_view name() const override { return "ernie4_5-moe"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kPairs);
    const ConfigReader reader(metadata, config.architecture);
    if (reader.get_count("interleave_moe_layer_step") != 1) {
      fail(ErrorCode::kUnsupported, "mixtures with other layers between theirs are not supported");
    }
    require_whole_rotation(config);
    config.experts.n_ff_shared = reader.get_count_or_none("expert_shared_feed_forward_length");
    config.experts.n_dense_layers = reader.get_count_or_none("leading_dense_block_count");
    return config;
  }
};

// With layers that predict further tokens, which are left out.
class Glm4Moe final : public Architecture {
 public:
  std::string_view name() const override { return "glm4moe"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    if (metadata.has(reader.key("rope.dimension_sections"))) {
      fail(ErrorCode::kUnsupported, "GLM 4 models that see are not supported");
    }
    config.n_layers -= reader.get_count_or_none("nextn_predict_layers");
    if (config.n_layers < 1) fail(ErrorCode::kInvalidFile, "the model has no layers");
    read_experts_by_key(reader, ExpertGating::kSigmoid, config.experts);
    return config;
  }

  LayerWeights declare_layer(WeightLoader& loader, const ModelConfig& config, int layer) const override {
    LayerWeights weights = Architecture::declare_layer(loader, config, layer);
    if (loader.has(layer_prefix(layer) + "attn_q_norm.weight")) {
      declare_head_norms(loader, config, layer, weights.attention);
    }
    return weights;
  }

 protected:
  std::string_view mlp_norm() const override { return "post_attention_norm"; }
};

}  // namespace

float read_experts_scale(const ConfigReader& reader) {
  const float scale = reader.get_float_or("expert_weights_scale", 0.0f);
  return scale != 0.0f ? scale : 1.0f;
}

void read_experts_by_key(const ConfigReader& reader, ExpertGating usual, ExpertsConfig& experts) {
  experts.n_ff_shared = reader.get_count_or_none("expert_shared_count") * experts.n_ff;
  experts.n_dense_layers = reader.get_count_or_none("leading_dense_block_count");
  experts.normalises = reader.metadata().get_bool(reader.key("expert_weights_norm")).value_or(false);
  experts.scale = read_experts_scale(reader);
  const int gating = reader.get_count_or_none("expert_gating_func");
  experts.gating = gating != 0 ? gating_of(gating) : usual;
}

std::span<const Architecture* const> mixture_architectures() {
  static const Qwen2Moe qwen2;
  static const Qwen3Moe qwen3;
  static const OlMoe olmo;
  static const Ernie45Moe ernie;
  static const Glm4Moe glm;
  static const std::array<const Architecture*, 5> all = {&qwen2, &qwen3, &olmo, &ernie, &glm};
  return all;
}

}  // namespace forerun
