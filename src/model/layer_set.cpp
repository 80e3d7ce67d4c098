#include "model/layer_set.h"

#include "core/check.h"
#include "core/ids.h"

namespace forerun {

LayerSet::LayerSet(int n_layers) : n_layers_(n_layers) {
  CHECK(n_layers >= 0 && n_layers <= kMaxLayers);
}

LayerSet LayerSet::full(int n_layers) {
  return first_blocks(n_layers, 2 * n_layers);
}

LayerSet LayerSet::none(int n_layers) {
  return LayerSet(n_layers);
}

LayerSet LayerSet::first_blocks(int n_layers, int n_blocks) {
  LayerSet set(n_layers);
  CHECK(n_blocks >= 0 && n_blocks <= 2 * n_layers);
  for (int block = 0; block < n_blocks; ++block) set.runs_[static_cast<size_t>(block)] = true;
  return set;
}

int LayerSet::n_attention() const {
  static const auto kAttention = [] {
    std::bitset<2 * kMaxLayers> blocks;
    for (size_t block = 0; block < blocks.size(); block += 2) blocks.set(block);
    return blocks;
  }();
  return static_cast<int>((runs_ & kAttention).count());
}

LayerSet LayerSet::without(std::span<const BlockId> blocks) const {
  LayerSet set = *this;
  for (const BlockId block : blocks) set.set(block, false);
  return set;
}

size_t LayerSet::index(BlockId block) const {
  CHECK(to_int(block) >= 0 && to_int(block) < n_blocks());
  return static_cast<size_t>(to_int(block));
}

}  // namespace forerun
