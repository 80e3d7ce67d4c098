// Which device gets which layers: arithmetic on sizes, without any device.
//
// The last layers go to devices (GPUs, RPC servers), in their order, and the head behind the last of
// them; the layers before stay with the CPU. So has libllama it, which computes some of what is spread
// like this.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace forerun {

// What the parts of a model take, in bytes.
struct PartSizes {
  std::vector<size_t> layers = {};  // their weights, as far as they may leave the CPU
  size_t head = 0;
  size_t stays = 0;        // weights that the CPU keeps in any case: embeddings, experts
  size_t cache = 0;        // of the text, in each layer
  size_t least_cache = 0;  // the same for a single text
  size_t passes = 0;       // on every device that computes
};

// As PlacementOptions have it.
struct LayerChoice {
  std::optional<int> n_gpu_layers = {};  // nullopt: what fits
  std::vector<double> split = {};        // one for each device, or empty: by free memory
  // Whether the first device is to have all if it can.
  bool prefers_first = true;
};

struct LayerPlan {
  int n_on_cpu = 0;  // layers
  // Those of each device; the head counts as one more behind the last layer.
  std::vector<int> on_device = {};
  // The CPU's weights and the cache of a text exceed its memory: weights have to be read from the mapped
  // file again and again.
  bool exceeds_memory = false;

  bool operator==(const LayerPlan&) const = default;
};

// `free_bytes` of each device, `host_bytes` of the CPU.
LayerPlan plan_layers(const PartSizes& sizes, const LayerChoice& choice,
                      std::span<const size_t> free_bytes, size_t host_bytes);

}  // namespace forerun
