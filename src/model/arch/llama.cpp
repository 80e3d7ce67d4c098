// Llama 1 to 3, CodeLlama, Vicuna, Mistral and Mixtral, Yi, DeepSeek-Coder, SmolLM: rotation
// over pairs of elements, SwiGLU, biases and Llama 3's frequency factors where the
// file has them.
#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class LlamaArchitecture final : public Architecture {
 public:
  std::string_view name() const override { return "llama"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kPairs);
    config.experts.n_ff = config.n_ff;
    if (config.rope.n_dims != config.heads.dim) {
      fail(ErrorCode::kInvalidFile, "llama.rope.dimension_count of {} should equal the head size of {}",
           config.rope.n_dims, config.heads.dim);
    }
    return config;
  }
};

}  // namespace

const Architecture& llama_architecture() {
  static const LlamaArchitecture architecture;
  return architecture;
}

}  // namespace forerun
