// The norm between a model's last block and its head, for those who want its output instead of
// logits.
//
// Const and thread-safe.
#pragma once

#include <span>
#include <vector>

#include "model/model.h"

namespace forerun {

class FinalNorm {
 public:
  explicit FinalNorm(const Model& model);

  // Of the residual stream behind the last block: n_embd numbers in, as many out.
  void apply(std::span<const float> state, std::span<float> normed) const;

 private:
  NormKind kind_;
  std::vector<float> weight_;
  std::vector<float> bias_;
  float eps_;
};

}  // namespace forerun
