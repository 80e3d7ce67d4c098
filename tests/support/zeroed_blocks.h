// A copy of a model in which some blocks add nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>

#include "model/layer_set.h"
#include "support/gguf_builder.h"

namespace forerun::test {

// Blocks that are not in `layers` end with projections, and biases, of zero: leaving them out
// changes no bit.
inline void write_without(const LayerSet& layers, const std::filesystem::path& from,
                          const std::filesystem::path& to) {
  copy_gguf(from, to, [&](StoredTensor& tensor) {
    for (int layer = 0; layer < layers.n_layers(); ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const bool skipped =
          (tensor.name.starts_with(prefix + "attn_output.") && !layers.runs(attention_block(layer))) ||
          ((tensor.name.starts_with(prefix + "ffn_down") || tensor.name.starts_with(prefix + "proj.")) &&
           !layers.runs(mlp_block(layer)));
      if (skipped) std::fill(tensor.data.begin(), tensor.data.end(), std::byte{0});
    }
  });
}

}  // namespace forerun::test
