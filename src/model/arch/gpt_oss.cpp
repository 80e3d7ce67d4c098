// gpt-oss: a mixture with sinks, which take a part of what heads look at, a sliding window in every
// second layer, limits to what its MLPs multiply, and biases of all projections.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class GptOssArchitecture final : public Architecture {
 public:
  static constexpr int kWindowPeriod = 2;

  std::string_view name() const override { return "gpt-oss"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    require_whole_rotation(config);
    config.activation = Activation::kLimitedSwish;
    config.has_sinks = true;
    config.window = reader.get_count("attention.sliding_window");
    config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kWindowPeriod);
    config.window_rope = config.rope;
    config.window_rope.freq_base = read_window_freq_base(reader, config.rope.freq_base);
    config.experts.gating = ExpertGating::kSoftmaxOfChosen;
    config.experts.normalises = false;
    return config;
  }

 protected:
  std::string_view mlp_norm() const override { return "post_attention_norm"; }
};

}  // namespace

const Architecture& gpt_oss_architecture() {
  static const GptOssArchitecture architecture;
  return architecture;
}

}  // namespace forerun
