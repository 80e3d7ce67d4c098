// The keys and values of every token the model has seen, for many sequences.
//
// KvCells says which cell belongs to whom; this holds what is in the cells: per
// layer one tensor of keys and one of values, a row per cell. Cells of skipped
// attention blocks keep what was there before; a pass over the full model
// overwrites them.
//
// Not thread-safe.
#pragma once

#include <ggml-cpp.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "model/config.h"
#include "model/device.h"
#include "model/kv_cells.h"
#include "model/kv_type.h"

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
  // What a token takes.
  static size_t cell_bytes(const ModelConfig& config, KvType type);

  // Throws Error: {kOutOfMemory}, {kUnsupported} when the heads do not fit the type,
  // {kInvalidArgument} when there is to be no cell.
  KvCache(const ModelConfig& config, const Device& device, const KvOptions& options);

  KvType type() const { return type_; }
  KvCells& cells() { return cells_; }
  const KvCells& cells() const { return cells_; }

  ggml_tensor* keys(int layer) const {
    return keys_[static_cast<size_t>(layer)];
  }  // [n_embd_kv, n_cells]
  ggml_tensor* values(int layer) const {
    return values_[static_cast<size_t>(layer)];
  }  // [n_embd_kv, n_cells]

  // Writes the committed text of a sequence, its tokens and its keys and values, to
  // a file, replacing it in one step. `tokens` are the committed ones.
  // `model_fingerprint` binds the file to the model. Throws Error{kIo}.
  void save(SequenceId sequence, std::span<const TokenId> tokens, uint64_t model_fingerprint,
            const std::filesystem::path& path) const;

  struct Restored {
    SequenceId sequence;
    std::vector<TokenId> tokens;
  };
  // Reads such a file into a new sequence. nullopt: it does not fit into the free
  // cells. Throws Error when it is damaged, or of another model or cache type.
  std::optional<Restored> restore(const std::filesystem::path& path, uint64_t model_fingerprint);

 private:
  // Makes the tensors and their memory.
  DeviceMemory allocate(const ModelConfig& config, const Device& device, int n_cells);

  KvType type_;
  ggml_context_ptr context_;
  std::vector<ggml_tensor*> keys_;
  std::vector<ggml_tensor*> values_;
  DeviceMemory memory_;
  KvCells cells_;  // after the memory: a size beyond it is found out there
};

}  // namespace forerun
