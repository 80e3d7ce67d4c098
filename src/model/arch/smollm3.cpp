// SmolLM 3: as Llama, but every fourth layer does not rotate.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

constexpr int kPeriod = 4;

class SmolLm3Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "smollm3"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kPairs);
    for (int layer = 0; layer < config.n_layers; ++layer) {
      config.layer_rotates.push_back((layer + 1) % kPeriod != 0);
    }
    return config;
  }
};

}  // namespace

const Architecture& smollm3_architecture() {
  static const SmolLm3Architecture architecture;
  return architecture;
}

}  // namespace forerun
