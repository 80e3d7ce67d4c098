// Arcee: as Llama with a plain MLP, the square of what is positive between its two matrices.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class ArceeArchitecture final : public Architecture {
 public:
  std::string_view name() const override { return "arcee"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kPairs);
    config.has_gates = false;
    config.activation = Activation::kReluSquared;
    return config;
  }
};

}  // namespace

const Architecture& arcee_architecture() {
  static const ArceeArchitecture architecture;
  return architecture;
}

}  // namespace forerun
