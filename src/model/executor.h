// Runs forward passes of a model over a KV cache.
//
// The life of a token here: a scratch node for it in cache().cells(), a Row that
// names the node, forward(), and then commit() or rollback() on the cells. A pass
// over a whole prompt, one decode step, a tree of draft tokens, a draft with layers
// skipped and a single block over many candidate states are all the same call.
//
// Graphs are built once per shape and reused; a steady decode step builds nothing
// and allocates nothing. All graphs share one buffer, sized for the largest.
//
// Not thread-safe: all Executors of a device compute from the one thread it belongs to
// (device.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/kv_cache.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/pass_graph.h"

namespace forerun {

struct ExecutorOptions {
  KvOptions kv;
  int max_rows = 512;  // of one pass; longer prompts are read in several
  // Smaller passes are filled up to so many rows, for devices whose results depend on the
  // number of rows: a token's logits are then the same bits alone and behind a chain of
  // others.
  int min_rows = 1;
};

class Executor {
 public:
  // Throws Error{kOutOfMemory}.
  Executor(std::shared_ptr<const Model> model, const ExecutorOptions& options);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  KvCache& cache() { return cache_; }
  KvCells& cells() { return cache_.cells(); }
  int max_rows() const { return max_rows_; }
  int min_rows() const { return min_rows_; }
  // How many rows a pass of so many really has: passes are filled up where that pays.
  int n_computed(int n_rows) const;
  // How many tokens behind one at `position` attend to as many cells as it does, masked
  // ones included, when cells are used in the order of positions.
  int n_until_next_span(int position) const { return kv_span(position + 1) - position - 1; }

  // Between 1 and max_rows() rows. Throws Error only when the device fails.
  const PassResult& forward(const Pass& wanted);

  // Reads between 1 and max_rows() tokens behind the committed text of a sequence in
  // one pass of the full model and commits them; the logits behind the last. They stay
  // valid until the next pass. nullopt: there is no room for them. On an exception the
  // sequence is as before.
  std::optional<std::span<const float>> read(SequenceId sequence, std::span<const TokenId> tokens);

  // How many passes were run, and graphs built, so far.
  int64_t n_passes() const { return n_passes_; }
  int n_graphs_built() const { return n_graphs_built_; }

 private:
  struct CachedGraph {
    std::unique_ptr<PassGraph> graph;
    int64_t last_used;
  };
  bool has_own_kernels() const {
    return model_->device().kernels() != nullptr || model_->gpu_kernels() != nullptr;
  }
  int kv_span(int n_used) const;
  int listed_span() const;
  PassShape shape_of(const Pass& pass) const;
  PassGraph& graph_for(const PassShape& shape);
  void allocate(PassGraph& graph);
  void reserve();
  void fill_inputs(const Pass& pass, const PassGraph& graph);
  void fill_masks(const Pass& pass, const PassInputs& inputs);
  const Pass& filled_up(const Pass& pass);
  // The results of the first n_rows rows.
  void collect(const Pass& pass, const PassGraph& graph, size_t n_rows);

  std::shared_ptr<const Model> model_;
  int max_rows_;
  int min_rows_;
  KvCache cache_;
  PassInputMemory input_memory_;
  VisibleRows visible_;
  PassContext context_;
  ggml_gallocr_ptr allocator_;
  std::vector<CachedGraph> graphs_;
  int64_t n_passes_ = 0;
  int n_graphs_built_ = 0;
  PassResult result_;
  Pass read_pass_;  // of read(), kept for its memory
  Pass filled_pass_;
  std::vector<float> filled_states_;
  std::vector<NodeId> read_path_;
  DeviceMemory logits_staging_;
  std::vector<DeviceMemory> hidden_staging_;
};

}  // namespace forerun
