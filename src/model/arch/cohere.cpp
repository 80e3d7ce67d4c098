// Command R and its successors: norms that subtract the mean, and an MLP that reads the same norm as the
// attention beside it. Cohere 2 has a sliding window in three of four layers, and rotates in these
// alone.
#include <array>

#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class CohereArchitecture : public Architecture {
 public:
  explicit CohereArchitecture(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, RopeLayout::kPairs, NormKind::kLayer);
    const ConfigReader reader(metadata, config.architecture);
    config.has_parallel_blocks = true;
    // 0 stands for none.
    const float scale = reader.get_float_or("logit_scale", 0.0f);
    if (scale != 0.0f) config.logit_scale = scale;
    return config;
  }
  // In the model of 104 billion each head has a norm of its own.
  bool computes(const GgufFile& file) const override {
    return file.find_tensor("blk.0.attn_q_norm.weight") == nullptr;
  }

 private:
  std::string_view name_;
};

class Cohere2Architecture final : public CohereArchitecture {
 public:
  static constexpr int kWindowPeriod = 4;

  Cohere2Architecture() : CohereArchitecture("cohere2") {}

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = CohereArchitecture::config(metadata);
    const ConfigReader reader(metadata, config.architecture);
    config.window = reader.get_count("attention.sliding_window");
    config.layer_is_windowed = read_window_pattern(reader, config.n_layers, kWindowPeriod);
    config.layer_rotates = config.layer_is_windowed;
    config.window_rope = config.rope;
    config.window_rope.freq_base = read_window_freq_base(reader, config.rope.freq_base);
    return config;
  }
};

}  // namespace

std::span<const Architecture* const> cohere_architectures() {
  static const CohereArchitecture command_r("command-r");
  static const Cohere2Architecture cohere2;
  static const std::array<const Architecture*, 2> all = {&command_r, &cohere2};
  return all;
}

}  // namespace forerun
