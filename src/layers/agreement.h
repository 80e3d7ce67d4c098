// How well the model with blocks left out says what it says with all of them.
#pragma once

#include "layers/request_view.h"
#include "model/executor.h"

namespace forerun {

// SWIFT's matchness: the share of some tokens of the text that the model with these layers,
// reading the full model's keys and values before them and its own among them, would have
// put there. Costs one pass of as many rows with these layers.
//
// Leaves the sequence as it is. Throws Error when the device fails.
class AgreementProbe {
 public:
  explicit AgreementProbe(Executor& executor) : executor_(executor) {}

  // Of the `n` tokens before place `end` of the text, all committed but perhaps the last, and
  // more before them. nullopt: no room in the cache.
  std::optional<double> measure(const RequestView& request, const LayerSet& layers, size_t end,
                                size_t n);

 private:
  Executor& executor_;
  Pass pass_;
  SamplerScratch scratch_;
};

}  // namespace forerun
