// What is Llama but for its name and for how it rotates: Qwen of all numbers below 3, EXAONE 3,
// ERNIE 4.5, Seed-OSS, InternLM 2, ChatGLM 3 and GLM 4 9B, Baichuan 7B, XVERSE, Pangu. Biases are read
// where the file has them.
#include <array>

#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

class NamedLlama : public Architecture {
 public:
  NamedLlama(std::string_view name, RopeLayout layout) : name_(name), layout_(layout) {}

  std::string_view name() const override { return name_; }
  ModelConfig config(const GgufMetadata& metadata) const override {
    return read_config(metadata, layout_);
  }

 private:
  std::string_view name_;
  RopeLayout layout_;
};

class SeedOss final : public NamedLlama {
 public:
  SeedOss() : NamedLlama("seed_oss", RopeLayout::kHalves) {}

 protected:
  std::string_view mlp_norm() const override { return "post_attention_norm"; }
};

// Where there are no pictures.
class Qwen2Vl final : public NamedLlama {
 public:
  Qwen2Vl() : NamedLlama("qwen2vl", RopeLayout::kHalves) {}

  ModelConfig config(const GgufMetadata& metadata) const override {
    require_text_sections(metadata, name());
    return NamedLlama::config(metadata);
  }
};

}  // namespace

std::span<const Architecture* const> llama_by_other_names() {
  static const NamedLlama qwen2("qwen2", RopeLayout::kHalves), exaone("exaone", RopeLayout::kHalves),
      ernie("ernie4_5", RopeLayout::kPairs), internlm("internlm2", RopeLayout::kPairs),
      chatglm("chatglm", RopeLayout::kPairs), xverse("xverse", RopeLayout::kPairs),
      pangu("pangu-embedded", RopeLayout::kHalves);
  static const SeedOss seed_oss;
  static const Qwen2Vl qwen2vl;
  static const std::array<const Architecture*, 9> all = {&qwen2,    &qwen2vl, &exaone, &seed_oss, &ernie,
                                                         &internlm, &chatglm, &xverse, &pangu};
  return all;
}

}  // namespace forerun
