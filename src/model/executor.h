// Runs forward passes of a model over a KV cache.
//
// The life of a token here: a scratch node for it in cells(), a Row that
// names the node, forward(), and then commit() or rollback() on the cells. A pass
// over a whole prompt, one decode step, a tree of draft tokens, a draft with layers
// skipped and a single block over many candidate states are all the same call.
//
// Not thread-safe: all Executors of a device compute from the one thread it belongs to
// (device.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/executor_options.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/pass_runner.h"

namespace forerun {

class Executor {
 public:
  // Throws Error{kOutOfMemory}.
  Executor(std::shared_ptr<const Model> model, const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  KvCells& cells() { return *cells_; }
  KvType kv_type() const { return options_.kv.type; }
  int max_rows() const { return options_.max_rows; }
  int min_rows() const { return options_.min_rows; }
  // What drafts may be like that a pass verifies.
  PassLimits limits() const { return runner_->limits(); }
  // How many rows a pass of so many really has: passes are filled up where that pays.
  int n_computed(int n_rows) const { return runner_->n_computed(n_rows); }
  // How many tokens behind one at `position` attend to as many cells as it does, masked
  // ones included, when cells are used in the order of positions.
  int n_until_next_span(int position) const { return runner_->n_until_next_span(position); }

  // Between 1 and max_rows() rows. Throws Error only when the device fails.
  const PassResult& forward(const Pass& pass);

  // Reads between 1 and max_rows() tokens behind the committed text of a sequence in
  // one pass of the full model and commits them; the logits behind the last. They stay
  // valid until the next pass. nullopt: there is no room for them. On an exception the
  // sequence is as before.
  std::optional<LogitsView> read(SequenceId sequence, std::span<const TokenId> tokens);

  // The committed text of a sequence, its tokens and its keys and values, to a file, which is replaced
  // in one step, and from there into a new sequence; nullopt: it does not fit into the free cells. Both
  // throw Error.
  void save(SequenceId sequence, std::span<const TokenId> tokens,
            const std::filesystem::path& path) const {
    runner_->save(sequence, tokens, path);
  }
  std::optional<RestoredText> restore(const std::filesystem::path& path) {
    return runner_->restore(path);
  }

  // Whether the last pass took what such passes take: the first ones of a shape on a GPU take longer.
  bool was_usual() const { return runner_->was_usual(); }
  // How many passes were run, and graphs built, so far.
  int64_t n_passes() const { return n_passes_; }
  int n_graphs_built() const { return runner_->n_graphs_built(); }

 private:
  std::shared_ptr<const Model> model_;
  ExecutorOptions options_;
  std::unique_ptr<PassRunner> runner_;
  KvCells* cells_;  // of the runner
  int64_t n_passes_ = 0;
  PassResult result_;
  Pass read_pass_;  // of read(), kept for its memory
  std::vector<NodeId> read_path_;
};

}  // namespace forerun
