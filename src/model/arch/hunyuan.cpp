// What norms every query and key head when it has been rotated: Hunyuan, dense, whose files may stretch
// the base of rotation, and Maincoder.
#include <cmath>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class RotatedNorms : public Architecture {
 public:
  RotatedNorms(std::string_view name, RopeLayout layout) : name_(name), layout_(layout) {}

  std::string_view name() const override { return name_; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, layout_);
    config.has_head_norms = true;
    config.head_norms = HeadNorms::kEachRotated;
    return config;
  }

 private:
  std::string_view name_;
  RopeLayout layout_;
};

class Hunyuan final : public RotatedNorms {
 public:
  Hunyuan() : RotatedNorms("hunyuan-dense", RopeLayout::kHalves) {}

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = RotatedNorms::config(metadata);
    const ConfigReader reader(metadata, config.architecture);
    if (metadata.has(reader.key("rope.dimension_sections"))) {
      fail(ErrorCode::kUnsupported, "Hunyuan models that see are not supported");
    }
    const float alpha = reader.get_float_or("rope.scaling.alpha", 0.0f);
    if (alpha > 0.0f && config.heads.dim > 2) {
      const auto dim = static_cast<float>(config.heads.dim);
      config.rope.freq_base *= std::pow(alpha, dim / (dim - 2.0f));
    }
    if (!std::isfinite(config.rope.freq_base) || config.rope.freq_base <= 0.0f)
      fail(ErrorCode::kInvalidFile, "{} is beyond all sense", reader.key("rope.scaling.alpha"));
    return config;
  }
};

}  // namespace

const Architecture& hunyuan_architecture() {
  static const Hunyuan architecture;
  return architecture;
}

const Architecture& maincoder_architecture() {
  static const RotatedNorms architecture("maincoder", RopeLayout::kPairs);
  return architecture;
}

}  // namespace forerun
