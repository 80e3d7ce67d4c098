// Qwen 3: as Qwen 2 without the biases, and every query and key head is normed
// before it is rotated.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Qwen3Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "qwen3"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    return read_config(metadata, RopeLayout::kHalves);
  }

  LayerWeights declare_layer(WeightLoader& loader, const ModelConfig& config, int layer) const override {
    LayerWeights weights = Architecture::declare_layer(loader, config, layer);
    declare_head_norms(loader, config, layer, weights.attention);
    return weights;
  }
};

}  // namespace

const Architecture& qwen3_architecture() {
  static const Qwen3Architecture architecture;
  return architecture;
}

}  // namespace forerun
