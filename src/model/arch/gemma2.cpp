// Gemma 2: embeddings scaled by the root of the width, norms before and after every block, GeGLU, scores
// and logits with soft caps, and a sliding window in every second layer.
#include <algorithm>
#include <cmath>

#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Gemma2Architecture final : public Architecture {
 public:
  static constexpr int kWindowPeriod = 2;
  static constexpr int kWindow = 4096;
  static constexpr float kScoreCap = 50.0f, kLogitCap = 30.0f;
  // The 27B model divides by its width per head instead of by the head size.
  static constexpr int kLayersOf27B = 46;

  std::string_view name() const override { return "gemma2"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    config.activation = Activation::kGelu;
    config.has_post_norms = true;
    config.embedding_scale = std::sqrt(static_cast<float>(config.n_embd));
    config.attention_softcap = read_cap(reader, "attn_logit_softcapping", kScoreCap);
    config.logit_softcap = read_cap(reader, "final_logit_softcapping", kLogitCap);
    const int divisor =
        config.n_layers == kLayersOf27B ? std::max(1, config.n_embd / config.heads.n) : config.heads.dim;
    config.query_scale = 1.0f / std::sqrt(static_cast<float>(divisor));
    config.attention_scale = 1.0f;
    config.window = reader.get_count_or("attention.sliding_window", kWindow);
    config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kWindowPeriod);
    config.window_rope = config.rope;
    return config;
  }
};

}  // namespace

const Architecture& gemma2_architecture() {
  static const Gemma2Architecture architecture;
  return architecture;
}

}  // namespace forerun
