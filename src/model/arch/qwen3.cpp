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
    const std::string prefix = layer_prefix(layer);
    LayerWeights weights{.attention = declare_attention(loader, config, prefix),
                         .mlp = declare_mlp(loader, config, prefix)};
    weights.attention.q_norm = loader.vector(prefix + "attn_q_norm.weight", config.head_dim);
    weights.attention.k_norm = loader.vector(prefix + "attn_k_norm.weight", config.head_dim);
    return weights;
  }
};

}  // namespace

const Architecture& qwen3_architecture() {
  static const Qwen3Architecture architecture;
  return architecture;
}

}  // namespace forerun
