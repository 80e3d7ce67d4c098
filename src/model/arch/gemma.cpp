// Gemma 1: as Llama with rotation over halves, embeddings scaled by the root of the width, and GeGLU.
#include <cmath>

#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class GemmaArchitecture final : public Architecture {
 public:
  std::string_view name() const override { return "gemma"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    config.activation = Activation::kGelu;
    config.embedding_scale = std::sqrt(static_cast<float>(config.n_embd));
    // Gemma scales queries, not scores: the same but for the rounding of a query.
    config.query_scale = config.attention_scale;
    config.attention_scale = 1.0f;
    return config;
  }
};

}  // namespace

const Architecture& gemma_architecture() {
  static const GemmaArchitecture architecture;
  return architecture;
}

}  // namespace forerun
