// Gemma 3: embeddings scaled by the root of the width, norms before and after every
// block and on query and key heads, GeGLU, and five layers with a sliding window to
// each that sees everything. Windowed layers rotate with a base of their own.
#include <algorithm>
#include <cmath>

#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

// Of six layers in a row the last sees everything, unless the file says otherwise.
constexpr int kWindowPeriod = 6;
constexpr float kWindowFreqBase = 10000.0f;
// The 27B model divides by its width per head instead of by the head size.
constexpr int kLayersOf27B = 62;

class Gemma3Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "gemma3"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    const ConfigReader reader(metadata, config.architecture);
    config.activation = Activation::kGelu;
    config.has_post_norms = true;
    config.has_head_norms = true;
    config.embedding_scale = std::sqrt(static_cast<float>(config.n_embd));
    config.logit_softcap = read_cap(reader, "final_logit_softcapping", 0.0f);
    // Gemma scales queries, not scores: the same but for the rounding of a query.
    const int divisor =
        config.n_layers == kLayersOf27B ? std::max(1, config.n_embd / config.heads.n) : config.heads.dim;
    config.query_scale = 1.0f / std::sqrt(static_cast<float>(divisor));
    config.attention_scale = 1.0f;
    const int64_t window = metadata.get_int(reader.key("attention.sliding_window")).value_or(0);
    if (window > 0) {
      config.window = reader.get_count("attention.sliding_window");
      config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kWindowPeriod);
      config.window_rope = config.rope;
      config.window_rope.freq_base = read_window_freq_base(reader, kWindowFreqBase);
      config.window_rope.freq_scale = 1.0f;
    }
    return config;
  }
};

}  // namespace

const Architecture& gemma3_architecture() {
  static const Gemma3Architecture architecture;
  return architecture;
}

}  // namespace forerun
