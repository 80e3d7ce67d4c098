// OLMo 2 and 3: norms behind blocks instead of before them, and of all queries and all keys of a token
// at once. In OLMo 3 three of four layers have a sliding window, and rotate without YaRN.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Olmo2Architecture final : public Architecture {
 public:
  static constexpr int kWindowPeriod = 4;

  std::string_view name() const override { return "olmo2"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    config.has_block_norms = false;
    config.has_post_norms = true;
    config.has_head_norms = true;
    config.head_norms = HeadNorms::kTogether;
    if (metadata.get_int(reader.key("attention.sliding_window")).value_or(0) > 0) {
      config.window = reader.get_count("attention.sliding_window");
      config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kWindowPeriod);
      config.window_rope = {.layout = config.rope.layout,
                            .n_dims = config.rope.n_dims,
                            .n_ctx_original = config.rope.n_ctx_original,
                            .freq_base = config.rope.freq_base};
    }
    return config;
  }
};

}  // namespace

const Architecture& olmo2_architecture() {
  static const Olmo2Architecture architecture;
  return architecture;
}

}  // namespace forerun
