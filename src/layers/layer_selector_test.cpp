#include "layers/layer_selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace forerun {
namespace {

TEST(UniformLayers, LeaveOutTheShareEvenly) {
  for (const int n_layers : {3, 8, 30, 135}) {
    for (const double share : {0.0, 0.1, 0.25, 0.45, 0.5, 1.0}) {
      const LayerSet layers = uniform_layers(n_layers, share);
      const int n_skipped = layers.n_blocks() - layers.n_running();
      const int wanted = static_cast<int>(std::lround(2 * n_layers * share));
      EXPECT_EQ(n_skipped, std::min(wanted, 2 * (n_layers - 2)));
      for (const int layer : {0, n_layers - 1}) {
        EXPECT_TRUE(layers.runs(attention_block(layer)));
        EXPECT_TRUE(layers.runs(mlp_block(layer)));
      }
      // Any two neighbouring stretches between skipped blocks differ by at most one.
      int shortest = layers.n_blocks(), longest = 0, last = -1;
      for (int b = 0; b < layers.n_blocks(); ++b) {
        if (layers.runs(BlockId{b})) continue;
        if (last >= 0) {
          shortest = std::min(shortest, b - last);
          longest = std::max(longest, b - last);
        }
        last = b;
      }
      if (n_skipped < 2) continue;
      EXPECT_LE(longest - shortest, 1) << n_layers << " layers, " << share;
    }
  }
  EXPECT_TRUE(uniform_layers(2, 0.5).is_full());
  EXPECT_TRUE(uniform_layers(1, 0.5).is_full());
}

}  // namespace
}  // namespace forerun
