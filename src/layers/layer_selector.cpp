#include "layers/layer_selector.h"

#include <algorithm>
#include <cmath>

namespace forerun {

LayerSet uniform_layers(int n_layers, double skipped_share) {
  LayerSet layers = LayerSet::full(n_layers);
  const int n_free = 2 * std::max(0, n_layers - 2);  // blocks that may go
  const int n_skipped = std::min(n_free, static_cast<int>(std::lround(2 * n_layers * skipped_share)));
  // The middle of each of n_skipped equal parts.
  for (int i = 0; i < n_skipped; ++i) {
    layers.set(BlockId{2 + (2 * i + 1) * n_free / (2 * n_skipped)}, false);
  }
  return layers;
}

}  // namespace forerun
