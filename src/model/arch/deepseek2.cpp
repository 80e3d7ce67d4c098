// DeepSeek 2, and GLM 4.7 Flash and others whose files say the same: attention with latent numbers and a
// mixture of experts whose first layers have one MLP each.
#include <cmath>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

// What YaRN multiplies scores with, which files give as a share of its logarithm.
void read_stretch(const ConfigReader& reader, ModelConfig& config) {
  RopeConfig& rope = config.rope;
  const float stretch = std::log(1.0f / rope.freq_scale);
  const float share = reader.get_float_or("rope.scaling.yarn_log_multiplier", 0.0f);
  // Where it is given, rotation leaves magnitudes as they are.
  if (rope.ext_factor != 0.0f && share != 0.0f) rope.attn_factor /= 1.0f + 0.1f * stretch;
  const float magnitude = rope.attn_factor * (1.0f + 0.1f * stretch) * (1.0f + share * stretch);
  const int n_key = config.latent.n_query + config.latent.n_rotated;
  config.attention_scale = magnitude * magnitude / std::sqrt(static_cast<float>(n_key));
}

class DeepSeek2Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "deepseek2"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config =
        read_mixture_config(metadata, RopeLayout::kPairs, NormKind::kRms, LayerKinds::kLatent);
    const ConfigReader reader(metadata, config.architecture);
    if (reader.get_float_or("attention.temperature_scale", 0.0f) != 0.0f)
      fail(ErrorCode::kUnsupported, "queries that grow with their position are not supported here");
    config.n_layers -= reader.get_count_or_none("nextn_predict_layers");
    if (config.n_layers < 1) fail(ErrorCode::kInvalidFile, "the model has no layers");
    read_experts_by_key(reader, usual_gating(config), config.experts);
    read_stretch(reader, config);
    return config;
  }

 private:
  // GLM 4.7 Flash is known by its layers where a file does not say more.
  static ExpertGating usual_gating(const ModelConfig& config) {
    return config.n_layers == 47 ? ExpertGating::kSigmoid : ExpertGating::kSoftmax;
  }
};

}  // namespace

const Architecture& deepseek2_architecture() {
  static const DeepSeek2Architecture architecture;
  return architecture;
}

}  // namespace forerun
