// What one device has of a model: the weights of some of its blocks, which it computes in every pass.
//
// A model that fits one device is a single part. Const after loading.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "gguf/gguf_file.h"
#include "model/config.h"
#include "model/device.h"
#include "model/layer_set.h"
#include "model/placement.h"
#include "model/weight_loader.h"
#include "model/weights.h"

namespace forerun {

// The block whose tensors are named like that; nullopt: it is none of a model of so many layers.
std::optional<BlockId> block_of(std::string_view tensor, int n_layers);

struct ModelPart {
  std::shared_ptr<Device> device;
  LayerSet blocks;
  bool has_head = false;      // the final norm and what is behind it
  GpuKernels* gpu = nullptr;  // of the device, where they compute this part; nullptr: others do
  ModelWeights weights = {};  // of its blocks; those of others have no data
  WeightStorage storage = {};

  bool has_own_kernels() const { return gpu != nullptr || device->kernels() != nullptr; }
  bool has_attention(int layer) const { return blocks.runs(attention_block(layer)); }
  // Whether it needs a tensor of the file.
  bool needs(const GgufTensor& tensor) const;
};

// The parts that a placement asks for, in the order of layers, without weights. Devices but the one
// that was wanted are opened. Throws Error.
std::vector<ModelPart> parts_of(const std::shared_ptr<Device>& device, const Placement& placement,
                                const ModelConfig& config);

}  // namespace forerun
