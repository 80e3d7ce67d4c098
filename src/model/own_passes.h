// Passes as graphs of our own.
//
// Graphs are built once per shape and reused; a steady decode step builds nothing
// and allocates nothing. All graphs share one buffer, sized for the largest.
#pragma once

#include <ggml-cpp.h>

#include <memory>
#include <vector>

#include "model/device_logits.h"
#include "model/executor_options.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/pass_graph.h"
#include "model/pass_runner.h"

namespace forerun {

class OwnPasses final : public PassRunner {
 public:
  // Throws Error{kOutOfMemory}.
  OwnPasses(std::shared_ptr<const Model> model, const ExecutorOptions& options);

  KvCells& cells() override { return cache_.cells(); }
  void run(const Pass& wanted, PassResult& result) override;
  int n_computed(int n_rows) const override;
  int n_until_next_span(int position) const override { return kv_span(position + 1) - position - 1; }
  int n_graphs_built() const override { return n_graphs_built_; }
  bool was_usual() const override { return was_usual_; }
  void save(SequenceId sequence, std::span<const TokenId> tokens,
            const std::filesystem::path& path) const override;
  std::optional<KvCache::Restored> restore(const std::filesystem::path& path) override;

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
  void prepare();
  void fill_inputs(const Pass& pass, const PassGraph& graph);
  void fill_masks(const Pass& pass, const PassInputs& inputs);
  const Pass& filled_up(const Pass& pass);
  // The results of the first n_rows rows.
  void collect(const Pass& pass, const PassGraph& graph, size_t n_rows, PassResult& result);
  void collect_logits(std::span<const Row> rows, const PassGraph& graph, PassResult& result);

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
  bool was_usual_ = true;
  Pass filled_pass_;
  std::vector<float> filled_states_;
  DeviceLogits device_logits_;  // where our kernels say which are the best
  DeviceMemory logits_staging_;
  std::vector<DeviceMemory> hidden_staging_;
};

}  // namespace forerun
