#include "model/final_norm.h"

#include <cmath>

#include "core/check.h"

namespace forerun {

FinalNorm::FinalNorm(const Model& model) : eps_(model.config().norm_eps) {
  const ModelPart& part = model.parts()[static_cast<size_t>(model.head_part())];
  const Norm& norm = part.weights.output_norm;
  const auto read = [&](const ggml_tensor* tensor, float otherwise) {
    const auto n_embd = static_cast<size_t>(model.config().n_embd);
    if (tensor == nullptr) return std::vector<float>(n_embd, otherwise);
    DeviceMemory staging;
    const auto numbers = part.device->read(tensor, n_embd, staging);
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  kind_ = norm.kind;
  weight_ = read(norm.weight, 1.0f);
  bias_ = read(norm.bias, 0.0f);
}

void FinalNorm::apply(std::span<const float> state, std::span<float> normed) const {
  CHECK(state.size() == weight_.size() && normed.size() == weight_.size());
  const auto n = static_cast<double>(state.size());
  double centre = 0;
  if (kind_ == NormKind::kLayer) {
    for (const float x : state) centre += static_cast<double>(x) / n;
  }
  double squares = 0;
  for (const float x : state) {
    const double rest = static_cast<double>(x) - centre;
    squares += rest * rest;
  }
  const auto scale = static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(eps_)));
  for (size_t i = 0; i < state.size(); ++i) {
    normed[i] = (state[i] - static_cast<float>(centre)) * scale * weight_[i] + bias_[i];
  }
}

}  // namespace forerun
