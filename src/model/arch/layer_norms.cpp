// What differs from Llama in norms that subtract the mean and in its MLP: StarCoder 2 and CodeShell,
// Jais 2 and Nemotron without gates, StableLM and Orion with them, OLMo with norms that have no weights.
// Biases are read where the file has them.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

struct Mlp {
  bool has_gates;
  Activation activation;
};

class LayerNorms : public Architecture {
 public:
  LayerNorms(std::string_view name, RopeLayout layout, Mlp mlp)
      : name_(name), layout_(layout), mlp_(mlp) {}

  std::string_view name() const override { return name_; }
  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = read_config(metadata, layout_, NormKind::kLayer);
    config.has_gates = mlp_.has_gates;
    config.activation = mlp_.activation;
    return config;
  }

 private:
  std::string_view name_;
  RopeLayout layout_;
  Mlp mlp_;
};

constexpr Mlp kGated{.has_gates = true, .activation = Activation::kSilu};
constexpr Mlp kGelu{.has_gates = false, .activation = Activation::kGelu};
constexpr Mlp kReluSquared{.has_gates = false, .activation = Activation::kReluSquared};

class StableLm final : public LayerNorms {
 public:
  StableLm() : LayerNorms("stablelm", RopeLayout::kHalves, kGated) {}

  // In the 12B model attention and MLP read the same norm, and each head has a norm of its own.
  bool computes(const GgufFile& file) const override {
    return file.find_tensor("blk.0.attn_q_norm.weight") == nullptr &&
           std::ranges::any_of(file.tensors(), [](const GgufTensor& tensor) {
             return tensor.name.ends_with(".ffn_norm.weight");
           });
  }
};

class Olmo final : public LayerNorms {
 public:
  Olmo() : LayerNorms("olmo", RopeLayout::kPairs, kGated) {}

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config = LayerNorms::config(metadata);
    config.has_norm_weights = false;
    if (ConfigReader(metadata, config.architecture).get_float_or("attention.clamp_kqv", 0.0f) > 0.0f)
      fail(ErrorCode::kUnsupported, "OLMo models that limit queries, keys and values are not supported");
    return config;
  }
};

}  // namespace

std::span<const Architecture* const> layer_norm_architectures() {
  static const LayerNorms starcoder2("starcoder2", RopeLayout::kHalves, kGelu),
      codeshell("codeshell", RopeLayout::kHalves, kGelu),
      jais2("jais2", RopeLayout::kHalves, kReluSquared),
      nemotron("nemotron", RopeLayout::kHalves, kReluSquared),
      orion("orion", RopeLayout::kHalves, kGated);
  static const StableLm stablelm;
  static const Olmo olmo;
  static const std::array<const Architecture*, 7> all = {&starcoder2, &codeshell, &jais2, &nemotron,
                                                         &orion,      &stablelm,  &olmo};
  return all;
}

}  // namespace forerun
