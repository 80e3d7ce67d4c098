// Whole layers left out, chosen by a dynamic programme over one token: CLaSp.
//
// Chen et al., "CLaSp: In-Context Layer Skip for Self-Speculative Decoding", ACL 2025. A fixed
// number of layers goes; which, is found over the latest token's states by the recursion of
// knapsack.h. The paper does so after every verification, its public re-implementation every
// 64 steps, as here by default.
#pragma once

#include <memory>

#include "layers/interval_selector.h"

namespace forerun {

struct ClaspOptions {
  IntervalOptions when = {};
  double skip = 0.25;  // share of the layers left out

  void describe(OptionVisitor& visitor);
};

std::unique_ptr<LayerSelector> make_clasp(const ClaspOptions& options,
                                          const SelectorResources& resources);

}  // namespace forerun
