// The keys and values of every token the model has seen, for many sequences, in the layers whose
// attention a part of the model computes.
//
// KvCells says which cell belongs to whom; this holds what is in the cells: per
// layer one tensor of keys and one of values, a row per cell. Cells of skipped
// attention blocks keep what was there before; a pass over the full model
// overwrites them.
//
// Not thread-safe.
#pragma once

#include <ggml-cpp.h>

#include <cstddef>
#include <vector>

#include "model/config.h"
#include "model/device.h"
#include "model/kv_type.h"
#include "model/model_part.h"

namespace forerun {

struct KvOptions {
  int n_cells = 4096;  // rounded up to a multiple of kKvGranularity
  KvType type = KvType::kF16;
};

// Attention looks at a multiple of this many cells, so that one graph serves as
// many decode steps.
constexpr int kKvGranularity = 256;

class KvCache {
 public:
  // How many there are where so many are wanted. Throws Error: {kInvalidArgument} when that is none,
  // {kOutOfMemory} when no memory has so many.
  static int n_cells_for(int n_wanted);
  // What a token takes.
  static size_t cell_bytes(const ModelConfig& config, KvType type);

  // Throws Error: {kOutOfMemory}, {kUnsupported} when the heads do not fit the type,
  // {kInvalidArgument} when there is to be no cell.
  KvCache(const ModelConfig& config, const ModelPart& part, const KvOptions& options);

  KvType type() const { return type_; }

  // Those a layer looks at, its own or others'; latent numbers are both. nullptr: its attention is
  // another part's.
  ggml_tensor* keys(int layer) const {
    return keys_[static_cast<size_t>(layer)];
  }  // [n_embd_kv, n_cells]
  ggml_tensor* values(int layer) const {
    return values_[static_cast<size_t>(layer)];
  }  // [n_embd_kv, n_cells]

 private:
  // Makes the tensors and their memory.
  DeviceMemory allocate(const ModelConfig& config, const ModelPart& part, int n_cells);

  KvType type_;
  ggml_context_ptr context_;
  std::vector<ggml_tensor*> keys_;
  std::vector<ggml_tensor*> values_;
  DeviceMemory memory_;
};

}  // namespace forerun
