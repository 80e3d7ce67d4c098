// Phi 3 and 4: as Llama with rotation over halves, one matrix for queries, keys and values and one for
// both halves of the MLP. Queries are scaled, not scores. Windows that files name are not used, as
// libllama does not: they are not known to be right.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Phi3Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "phi3"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    config.query_scale = config.attention_scale;
    config.attention_scale = 1.0f;
    return config;
  }
};

}  // namespace

const Architecture& phi3_architecture() {
  static const Phi3Architecture architecture;
  return architecture;
}

}  // namespace forerun
