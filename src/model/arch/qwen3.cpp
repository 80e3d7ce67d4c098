// Qwen 3: as Qwen 2 without the biases, and every query and key head is normed
// before it is rotated. Qwen 3 VL is the same where there are no pictures.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Qwen3Architecture : public Architecture {
 public:
  std::string_view name() const override { return "qwen3"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kHalves);
    config.has_head_norms = true;
    return config;
  }
};

class Qwen3VlArchitecture final : public Qwen3Architecture {
 public:
  std::string_view name() const override { return "qwen3vl"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    require_text_sections(metadata, name());
    return Qwen3Architecture::config(metadata);
  }
};

}  // namespace

const Architecture& qwen3vl_architecture() {
  static const Qwen3VlArchitecture architecture;
  return architecture;
}

const Architecture& qwen3_architecture() {
  static const Qwen3Architecture architecture;
  return architecture;
}

}  // namespace forerun
