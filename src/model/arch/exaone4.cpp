// EXAONE 4: norms behind blocks instead of before them, and of query and key heads. In the 32B model
// three of four layers have a sliding window, and the others do not rotate.
#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Exaone4Architecture final : public Architecture {
 public:
  static constexpr int kLayersOf32B = 64;
  static constexpr int kWindowPeriod = 4;
  static constexpr int kWindow = 4096;

  std::string_view name() const override { return "exaone4"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    if (metadata.get_int(reader.key("nextn_predict_layers")).value_or(0) > 0) {
      fail(ErrorCode::kUnsupported, "EXAONE 4 models that predict several tokens are not supported");
    }
    config.has_block_norms = false;
    config.has_post_norms = true;
    config.has_head_norms = true;
    if (config.n_layers == kLayersOf32B) {
      config.window = reader.get_count_or("attention.sliding_window", kWindow);
      config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kWindowPeriod);
      config.layer_rotates = config.layer_is_windowed;
      config.window_rope = config.rope;
    }
    return config;
  }
};

}  // namespace

const Architecture& exaone4_architecture() {
  static const Exaone4Architecture architecture;
  return architecture;
}

}  // namespace forerun
