// Granite 3, dense and as mixtures, and MiniCPM: as Llama, with embeddings, scores, what blocks
// contribute, and logits scaled. Files of Granite may switch rotation off.
#include <array>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

// 0 stands for none in these files.
float read_scale(const ConfigReader& reader, const char* name, float otherwise) {
  const float value = reader.get_float_or(name, 0.0f);
  return value == 0.0f ? otherwise : value;
}

ModelConfig read_scaled(const GgufMetadata& metadata) {
  ModelConfig config = read_mixture_config(metadata, RopeLayout::kPairs);
  const ConfigReader reader(metadata, config.architecture);
  config.embedding_scale = read_scale(reader, "embedding_scale", 1.0f);
  config.residual_scale = read_scale(reader, "residual_scale", 1.0f);
  config.logit_scale = 1.0f / read_scale(reader, "logit_scale", 1.0f);
  return config;
}

class GraniteArchitecture final : public Architecture {
 public:
  explicit GraniteArchitecture(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_scaled(metadata);
    const ConfigReader reader(metadata, config.architecture);
    config.experts.n_ff = config.n_ff;
    config.experts.n_ff_shared = reader.get_count_or_none("expert_shared_feed_forward_length");
    if (metadata.has(reader.key("deepstack_mapping"))) {
      fail(ErrorCode::kUnsupported, "Granite models that see are not supported");
    }
    config.attention_scale = read_scale(reader, "attention.scale", config.attention_scale);
    if (!metadata.get_bool(reader.key("rope.scaling.finetuned")).value_or(true)) {
      config.layer_rotates.assign(static_cast<size_t>(config.n_layers), false);
    }
    return config;
  }

 private:
  std::string_view name_;
};

class MiniCpmArchitecture final : public Architecture {
 public:
  std::string_view name() const override { return "minicpm"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    const ConfigReader reader(metadata, std::string(name()));
    for (const char* scale : {"embedding_scale", "residual_scale", "logit_scale"}) {
      if (metadata.has(reader.key(scale))) continue;
      fail(ErrorCode::kUnsupported, "MiniCPM models of files without {} are not supported",
           reader.key(scale));
    }
    return read_scaled(metadata);
  }
};

}  // namespace

std::span<const Architecture* const> granite_architectures() {
  static const GraniteArchitecture dense("granite"), mixture("granitemoe");
  static const std::array<const Architecture*, 2> all = {&dense, &mixture};
  return all;
}

const Architecture& minicpm_architecture() {
  static const MiniCpmArchitecture architecture;
  return architecture;
}

}  // namespace forerun
