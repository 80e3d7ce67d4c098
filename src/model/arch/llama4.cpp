// Llama 4's text models: of four layers three rotate and see the run of tokens that a token is in; the
// fourth does not rotate, sees everything, and its queries grow with their position. Queries and keys
// that rotate are normed without weights. Experts weigh what they read.
#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Llama4Architecture final : public Architecture {
 public:
  static constexpr int kPeriod = 4, kRun = 8192;
  static constexpr float kTemperature = 0.1f;
  // The model with so many norms no heads.
  static constexpr int kExpertsOfMaverick = 128;

  std::string_view name() const override { return "llama4"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kPairs);
    const ConfigReader reader(metadata, config.architecture);
    ExpertsConfig& experts = config.experts;
    if (experts.n_all == 0) fail(ErrorCode::kUnsupported, "llama4 models without experts");
    require_whole_rotation(config);
    experts.step = reader.get_count("interleave_moe_layer_step");
    experts.n_ff_shared = experts.n_ff;
    experts.gating = ExpertGating::kSigmoid;
    experts.normalises = false;
    experts.weighs_inputs = true;
    experts.scale = read_experts_scale(reader);
    config.head_norms = HeadNorms::kEachRotated;
    // A window of 0 is a model's that rotates, and sees everything, in all layers.
    if (metadata.get_int(reader.key("attention.sliding_window")).value_or(kRun) == 0) return config;
    config.window = kRun;
    config.window_in_runs = true;
    config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kPeriod);
    config.window_rope = config.rope;
    config.window_rope.freq_base = read_window_freq_base(reader, config.rope.freq_base);
    for (int layer = 0; layer < config.n_layers; ++layer)
      config.layer_rotates.push_back((layer + 1) % kPeriod != 0);
    config.temperature_scale = kTemperature;
    config.temperature_length = kRun;
    config.temperature_offset = 1;
    config.temperature_is_of_others = true;
    return config;
  }

  LayerWeights declare_layer(WeightLoader& loader, const ModelConfig& config, int layer) const override {
    LayerWeights weights = Architecture::declare_layer(loader, config, layer);
    if (config.rotates(layer) && config.experts.n_all != kExpertsOfMaverick) {
      weights.attention.q_norm.kind = NormKind::kRms;
      weights.attention.k_norm.kind = NormKind::kRms;
    }
    return weights;
  }
};

}  // namespace

const Architecture& llama4_architecture() {
  static const Llama4Architecture architecture;
  return architecture;
}

}  // namespace forerun
