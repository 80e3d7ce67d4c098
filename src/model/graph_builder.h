// The pieces that an architecture's blocks are made of.
//
// One GraphBuilder builds one graph. There are two kinds: of ggml's own operations
// (ggml_graph_builder.h), for GPUs, and of our kernels (cpu/graph_builder.h). Row and
// cell counts are baked into a graph; everything that changes from pass to pass
// (states, positions, cells, what a row sees) is an input, so that it serves again.
//
// States are F32 [n_embd, n_rows]. What queries(), attend() and gated() return is for
// the same builder alone.
#pragma once

#include <ggml.h>

#include <memory>

#include "core/check.h"
#include "model/config.h"
#include "model/device.h"
#include "model/kv_cache.h"
#include "model/pass_program.h"
#include "model/weights.h"

namespace forerun {

struct PassInputs {
  ggml_tensor* states = nullptr;     // F32 [n_embd, n_rows]: the residual stream before the first block
  ggml_tensor* positions = nullptr;  // I32 [n_rows]
  ggml_tensor* cells = nullptr;      // I64 [n_rows]: where each row's key and value go
  ggml_tensor* temperatures = nullptr;  // F32 [n_rows]: of queries, in models that have such
  ggml_tensor* mask = nullptr;          // F16 [n_kv, n_rows]: 0 where a row sees a cell, else -inf
  ggml_tensor* window_mask = nullptr;   // the same for layers with a sliding window
  ggml_tensor* seen = nullptr;          // what rows see, as our kernels on GPUs read it
  ggml_tensor* out_rows = nullptr;      // I32 [n_out]: the rows that something comes out of
  ggml_tensor* hidden_rows = nullptr;   // I32 [n_hidden]
  // In models whose layers have something of tokens for themselves: their embeddings, F32 [n_embd,
  // n_rows], whatever enters, and what the table has, F32 [n_embd_per_layer * n_layers, n_rows].
  ggml_tensor* embeddings = nullptr;
  ggml_tensor* per_layer = nullptr;
};

// Rows on their way through the blocks.
struct RowStream {
  ggml_tensor* states = nullptr;
  ggml_tensor* entered = nullptr;  // the layer: where its blocks are parallel
  ggml_tensor* rows = nullptr;     // which of the pass's rows they are, I32; nullptr: all
};

// What a graph is built from and into. All of it outlives the builder.
struct GraphParts {
  ggml_context* context;
  ggml_cgraph* graph;
  Device& device;
  const ModelConfig& config;
  const ModelWeights& weights;
  const KvCache& cache;
  const PassInputs& inputs;
  int n_kv;             // cells that rows may see
  int attention_tiles;  // gpu_kernels.h
};

// What is not overridden is for models that a builder does not serve.
class GraphBuilder {
 public:
  explicit GraphBuilder(const GraphParts& parts) : parts_(parts) {}
  virtual ~GraphBuilder() = default;

  const ModelConfig& config() const { return parts_.config; }
  const LayerWeights& layer(int index) const {
    return parts_.weights.layers[static_cast<size_t>(index)];
  }

  // Norm, projections, norms of heads, rotation: the queries. Keys and values go to the
  // rows' cells.
  virtual ggml_tensor* queries(int layer, ggml_tensor* states) = 0;
  // Every query looks at the cells its row sees.
  virtual ggml_tensor* attend(int layer, ggml_tensor* queries) = 0;
  // activation(gate(x)) * up(x), where x is the norm of states; without a gate activation(up(x)).
  virtual ggml_tensor* gated(const MlpWeights& mlp, ggml_tensor* states) = 0;
  // The states with linear(x) added, normed before if there is a `post_norm`.
  virtual ggml_tensor* contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                                  ggml_tensor* states) = 0;
  // The states with what experts make of them added, and the MLP beside these.
  virtual ggml_tensor* mixture(const MlpWeights& mlp, ggml_tensor* states) = 0;
  // The states with what the layer has of the tokens for itself added (PerLayerWeights); `rows`: see
  // RowStream.
  virtual ggml_tensor* add_per_layer(int layer, ggml_tensor* states, ggml_tensor* rows);
  // The states times one number.
  virtual ggml_tensor* scaled(ggml_tensor* states, ggml_tensor* factor);
  // Final norm and head, and the cap of logits if the model has one: [n_vocab, rows of states].
  virtual ggml_tensor* head(ggml_tensor* states) = 0;
  // A BestOfRow for each row of the logits (best_logits.h). nullptr: the CPU reads them all where they
  // are, or copies them.
  virtual ggml_tensor* best(ggml_tensor* /*logits*/) { return nullptr; }
  // A copy of those rows of the states; nullptr: of all.
  virtual ggml_tensor* copy_rows(ggml_tensor* states, ggml_tensor* rows) = 0;

  void expand(ggml_tensor* tensor) { ggml_build_forward_expand(parts_.graph, tensor); }
  // All is built. The graph and what it was built from outlive the program.
  virtual std::unique_ptr<PassProgram> finish() = 0;

 protected:
  ggml_context* context() const { return parts_.context; }
  const GraphParts& parts() const { return parts_; }

 private:
  GraphParts parts_;
};

inline ggml_tensor* GraphBuilder::add_per_layer(int, ggml_tensor*, ggml_tensor*) {
  CHECK(false);
  return nullptr;
}

inline ggml_tensor* GraphBuilder::scaled(ggml_tensor*, ggml_tensor*) {
  CHECK(false);
  return nullptr;
}

}  // namespace forerun
