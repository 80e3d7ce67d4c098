// Saving and restoring the committed text of a sequence.
//
// A file has the keys and values of all layers in their order, wherever these are computed: it can be
// restored where they are spread otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "model/kv_cells.h"
#include "model/kv_type.h"

struct ggml_tensor;

namespace forerun {

struct RestoredText {
  SequenceId sequence;
  std::vector<TokenId> tokens;
};

// What the cells of a model hold.
struct KvContents {
  KvType type;
  uint64_t model_fingerprint;         // binds files to the model
  std::vector<ggml_tensor*> tensors;  // per layer its keys, then its values

  // Writes the committed text of a sequence, its tokens and its keys and values, to
  // a file, replacing it in one step. `tokens` are the committed ones. Throws Error{kIo}.
  void save(const KvCells& cells, SequenceId sequence, std::span<const TokenId> tokens,
            const std::filesystem::path& path) const;
  // Reads such a file into a new sequence. nullopt: it does not fit into the free
  // cells. Throws Error when it is damaged, or of another model or cache type.
  std::optional<RestoredText> restore(KvCells& cells, const std::filesystem::path& path) const;
};

}  // namespace forerun
