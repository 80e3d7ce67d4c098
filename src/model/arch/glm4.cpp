// GLM 4: norms before and after every block, rotation of pairs in the first half of a head, one matrix
// for both halves of the MLP.
#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class Glm4Architecture final : public Architecture {
 public:
  std::string_view name() const override { return "glm4"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kPairs);
    const ConfigReader reader(metadata, config.architecture);
    if (metadata.has(reader.key("rope.dimension_sections")) ||
        metadata.get_int(reader.key("nextn_predict_layers")).value_or(0) > 0) {
      fail(ErrorCode::kUnsupported,
           "GLM 4 models that see, or predict several tokens, are not supported");
    }
    config.has_post_norms = true;
    return config;
  }
};

}  // namespace

const Architecture& glm4_architecture() {
  static const Glm4Architecture architecture;
  return architecture;
}

}  // namespace forerun
