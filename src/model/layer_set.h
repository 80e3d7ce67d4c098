// Which blocks of a model run.
//
// A model of L layers is a chain of 2L residual blocks: block 2i is the attention
// of layer i, block 2i + 1 its MLP. Leaving a block out means that the residual
// stream passes it unchanged. The full model, layer skipping and early exit are
// the same forward pass with another LayerSet.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

namespace forerun {

enum class BlockId : int32_t {};

constexpr BlockId attention_block(int layer) {
  return BlockId{2 * layer};
}
constexpr BlockId mlp_block(int layer) {
  return BlockId{2 * layer + 1};
}

// A small value: copying and comparing are cheap, nothing is allocated.
class LayerSet {
 public:
  static constexpr int kMaxLayers = 512;

  static LayerSet full(int n_layers);
  static LayerSet none(int n_layers);
  // The blocks below `n_blocks`: an early exit after them.
  static LayerSet first_blocks(int n_layers, int n_blocks);

  int n_layers() const { return n_layers_; }
  int n_blocks() const { return 2 * n_layers_; }
  int n_running() const { return static_cast<int>(runs_.count()); }
  int n_attention() const;  // blocks of attention among them
  bool has_attention() const { return n_attention() > 0; }
  bool is_full() const { return n_running() == n_blocks(); }

  bool runs(BlockId block) const { return runs_[index(block)]; }
  void set(BlockId block, bool runs) { runs_[index(block)] = runs; }
  LayerSet without(std::span<const BlockId> blocks) const;

  bool operator==(const LayerSet&) const = default;

 private:
  explicit LayerSet(int n_layers);
  size_t index(BlockId block) const;

  int32_t n_layers_;
  std::bitset<2 * kMaxLayers> runs_;
};

}  // namespace forerun
