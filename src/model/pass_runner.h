// What computes the passes of an Executor: graphs of our own (own_passes.h), or libllama
// (llama/llama_passes.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>

#include "core/ids.h"
#include "model/kv_cells.h"
#include "model/kv_file.h"
#include "model/pass.h"

namespace forerun {

// What drafts may be like that a pass verifies.
struct PassLimits {
  bool trees = true;  // several tokens may follow the same one
  int depth = std::numeric_limits<int>::max();
  bool rolls_back = true;  // else what was right of a draft is computed again
};

class PassRunner {
 public:
  virtual ~PassRunner() = default;

  virtual KvCells& cells() = 0;
  // Throws Error only when the device fails.
  virtual void run(const Pass& pass, PassResult& result) = 0;

  virtual PassLimits limits() const { return {}; }
  // How many rows a pass of so many really has.
  virtual int n_computed(int n_rows) const { return n_rows; }
  // Executor::n_until_next_span().
  virtual int n_until_next_span(int position) const = 0;
  virtual int n_graphs_built() const { return 0; }
  virtual bool was_usual() const { return true; }

  // As KvContents has them. Both throw Error.
  virtual void save(SequenceId sequence, std::span<const TokenId> tokens,
                    const std::filesystem::path& path) const = 0;
  virtual std::optional<RestoredText> restore(const std::filesystem::path& path) = 0;
};

}  // namespace forerun
