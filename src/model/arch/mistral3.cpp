// Mistral 3 (Ministral, Devstral 2): as Llama with YaRN, of which files say more, and queries that grow
// with their position.
#include <cmath>

#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Mistral3Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "mistral3"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kPairs);
    const ConfigReader reader(metadata, config.architecture);
    RopeConfig& rope = config.rope;
    rope.beta_fast = reader.get_float_or("rope.scaling.yarn_beta_fast", rope.beta_fast);
    rope.beta_slow = reader.get_float_or("rope.scaling.yarn_beta_slow", rope.beta_slow);
    // How much of YaRN's correction of magnitudes is taken back.
    const float taken_back = reader.get_float_or("rope.scaling.yarn_log_multiplier", 0.0f);
    if (rope.ext_factor != 0.0f && rope.freq_scale < 1.0f)
      rope.attn_factor /= 1.0f + 0.1f * taken_back * std::log(1.0f / rope.freq_scale);
    config.temperature_scale = reader.get_float_or("attention.temperature_scale", 0.0f);
    config.temperature_length = rope.n_ctx_original;
    return config;
  }
};

}  // namespace

const Architecture& mistral3_architecture() {
  static const Mistral3Architecture architecture;
  return architecture;
}

}  // namespace forerun
