// Granite 3, dense and as mixtures: as Llama, with embeddings, scores, what blocks contribute, and
// logits scaled. Files may switch rotation off.
#include <array>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class GraniteArchitecture final : public Architecture {
 public:
  explicit GraniteArchitecture(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_mixture_config(metadata, RopeLayout::kPairs);
    const ConfigReader reader(metadata, config.architecture);
    config.experts.n_ff = config.n_ff;
    config.experts.n_ff_shared = reader.get_count_or_none("expert_shared_feed_forward_length");
    if (metadata.has(reader.key("deepstack_mapping"))) {
      fail(ErrorCode::kUnsupported, "Granite models that see are not supported");
    }
    // 0 stands for none in these files.
    const auto scale = [&](const char* name, float otherwise) {
      const float value = reader.get_float_or(name, 0.0f);
      return value == 0.0f ? otherwise : value;
    };
    config.embedding_scale = scale("embedding_scale", 1.0f);
    config.attention_scale = scale("attention.scale", config.attention_scale);
    config.residual_scale = scale("residual_scale", 1.0f);
    config.logit_scale = 1.0f / scale("logit_scale", 1.0f);
    if (!metadata.get_bool(reader.key("rope.scaling.finetuned")).value_or(true)) {
      config.layer_rotates.assign(static_cast<size_t>(config.n_layers), false);
    }
    return config;
  }

 private:
  std::string_view name_;
};

}  // namespace

std::span<const Architecture* const> granite_architectures() {
  static const GraniteArchitecture dense("granite"), mixture("granitemoe");
  static const std::array<const Architecture*, 2> all = {&dense, &mixture};
  return all;
}

}  // namespace forerun
