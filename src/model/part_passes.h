// What a part of a model computes of passes, as graphs of our own on its device.
//
// Graphs are built once per shape and reused; a steady decode step builds nothing
// and allocates nothing. All graphs share one buffer, sized for the largest.
#pragma once

#include <ggml-cpp.h>

#include <memory>
#include <span>
#include <vector>

#include "model/device_logits.h"
#include "model/kv_cache.h"
#include "model/kv_cells.h"
#include "model/model.h"
#include "model/pass.h"
#include "model/pass_graph.h"
#include "model/pass_stages.h"

namespace forerun {

struct PartPassesOptions {
  int max_rows;
  int min_rows;
  size_t n_stages;  // of a pass of the full model that are the part's
};

// A stage of a pass, as the part computes it.
struct StageWork {
  const PassStage& stage;
  int64_t pass;               // its number: its stages have the same rows, or some of them
  std::span<const Row> rows;  // `logits`: something is to come out of them
  std::span<const int> hidden_at;
};

class PartPasses {
 public:
  // All outlive it. Throws Error{kOutOfMemory}.
  PartPasses(const Model& model, const ModelPart& part, const KvCache& cache, const KvCells& cells,
             const PartPassesOptions& options);
  PartPasses(const PartPasses&) = delete;
  PartPasses& operator=(const PartPasses&) = delete;

  // Makes room for such a stage of the largest passes.
  void reserve(const PassStage& stage);
  // Prepares passes of answers and their drafts, on GPUs, where the first of a shape would take several
  // times as long as others. From the largest on, which makes room for the rest.
  void prepare(const PassStage& stage);

  // Takes up a stage; where the states go that enter it, n_embd for each row.
  std::span<float> begin(const StageWork& work);
  // Throws Error only when the device fails.
  void compute();

  // Of the stage that was computed last, valid until the next. Which rows something came out of: more
  // than was wanted where passes are filled up.
  bool came_out(size_t row) const { return rows_[row].logits; }
  // The logits of these, but of the rows that fill a pass up: all of them, or the best and where the
  // others are.
  struct Logits {
    std::span<const float> all = {};
    std::span<const BestOfRow> best = {};
    WholeLogits* whole = nullptr;
  };
  Logits logits();
  // Their states, if it had no head.
  void read_states(std::span<float> states) const;
  // The states of all `hidden` rows at hidden_at[at].
  std::span<const float> hidden(size_t at);

  int n_computed(int n_rows) const;
  // How many cells attention looks at when so many are in use.
  int kv_span(int n_used) const;
  int n_graphs_built() const { return n_graphs_built_; }
  bool was_usual() const { return current_->was_usual(); }

 private:
  struct CachedGraph {
    std::unique_ptr<PassGraph> graph;
    int64_t last_used;
  };
  // What inputs were written for; the states that enter aside, they are the same for stages of a pass
  // that agree in this.
  struct Written {
    int64_t pass = -1;
    size_t n_wanted_rows = 0;
    int n_rows = 0, n_kv = 0, attention_tiles = 0, n_out = 0, n_hidden = 0;
    bool operator==(const Written&) const = default;
  };
  int listed_span() const;
  PassShape shape_of(const StageWork& work) const;
  PassGraph& graph_for(const PassShape& shape);
  void allocate(PassGraph& graph);
  std::span<const Row> filled_up(std::span<const Row> rows);
  void write_inputs();
  void write_masks();
  void write_embeddings();
  void fetch_whole_logits();

  const Model& model_;
  const ModelPart& part_;
  const KvCache& cache_;
  const KvCells& cells_;
  PartPassesOptions options_;
  PassInputMemory input_memory_;
  VisibleRows visible_;
  int64_t visible_pass_ = -1;  // whose rows it has,
  size_t n_visible_ = 0;       // and how many of them
  PassContext context_;
  ggml_gallocr_ptr allocator_;
  std::vector<CachedGraph> graphs_;
  int64_t n_stages_begun_ = 0;
  int n_graphs_built_ = 0;
  Written written_;
  size_t n_upload_bytes_ = 0;
  PassGraph* current_ = nullptr;
  std::span<const Row> rows_;  // of the stage, those that fill it up too
  size_t n_wanted_rows_ = 0;
  std::vector<Row> filled_rows_;
  DeviceLogits device_logits_;  // where our kernels say which are the best
  DeviceMemory logits_staging_;
  std::vector<DeviceMemory> hidden_staging_;
};

}  // namespace forerun
