#include "model/final_norm.h"

#include <cmath>

#include "core/check.h"

namespace forerun {

FinalNorm::FinalNorm(const Model& model) : eps_(model.config().norm_eps) {
  DeviceMemory staging;
  const auto weight = model.device().read(model.weights().output_norm,
                                          static_cast<size_t>(model.config().n_embd), staging);
  weight_.assign(weight.begin(), weight.end());
}

void FinalNorm::apply(std::span<const float> state, std::span<float> normed) const {
  CHECK(state.size() == weight_.size() && normed.size() == weight_.size());
  double squares = 0;
  for (const float x : state) squares += static_cast<double>(x) * static_cast<double>(x);
  const double mean = squares / static_cast<double>(state.size());
  const auto scale = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(eps_)));
  for (size_t i = 0; i < state.size(); ++i) normed[i] = state[i] * scale * weight_[i];
}

}  // namespace forerun
