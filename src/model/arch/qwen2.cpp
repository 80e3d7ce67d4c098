// Qwen 1.5, 2 and 2.5: as Llama, but rotation over halves, and biases on query, key
// and value.
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Qwen2Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "qwen2"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    return read_config(metadata, RopeLayout::kHalves);
  }
};

}  // namespace

const Architecture& qwen2_architecture() {
  static const Qwen2Architecture architecture;
  return architecture;
}

}  // namespace forerun
