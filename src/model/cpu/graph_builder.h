// Graphs of our own CPU kernels (kernels/). Nine nodes to a layer: norm and quantise,
// project, heads, attend, merge and quantise, project and add; norm and quantise, gate
// and up with the activation between them, project and add.
#pragma once

#include <map>
#include <vector>

#include "model/cpu/attention_ops.h"
#include "model/cpu/expert_ops.h"
#include "model/cpu/heads_ops.h"
#include "model/cpu/latent_ops.h"
#include "model/cpu/norm_ops.h"
#include "model/cpu/op.h"
#include "model/cpu/product_ops.h"
#include "model/graph_builder.h"

namespace forerun {

class CpuGraphBuilder final : public GraphBuilder {
 public:
  // `rows`: what the rows of a pass see, whenever the program runs.
  CpuGraphBuilder(const GraphParts& parts, const VisibleRows& rows)
      : GraphBuilder(parts), kernels_(*parts.device.kernels()), rows_(rows) {}

  ggml_tensor* queries(int layer, ggml_tensor* states) override;
  ggml_tensor* attend(int layer, ggml_tensor* queries) override;
  ggml_tensor* gated(const MlpWeights& mlp, ggml_tensor* states) override;
  ggml_tensor* contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                          ggml_tensor* states) override;
  ggml_tensor* mixture(const MlpWeights& mlp, ggml_tensor* states) override;
  ggml_tensor* add_per_layer(int layer, ggml_tensor* states, ggml_tensor* rows) override;
  ggml_tensor* scaled(ggml_tensor* states, ggml_tensor* factor) override;
  ggml_tensor* head(ggml_tensor* states) override;
  ggml_tensor* copy_rows(ggml_tensor* states, ggml_tensor* rows) override;
  std::unique_ptr<PassProgram> finish() override;

 private:
  // Activations: see ActivationLayout.
  ggml_tensor* activations(const Norm& norm, ggml_tensor* states);
  // The parts of a product that reads activations of n numbers, and its sources, to
  // which rows for ggml's dot products are added as needed.
  struct Product {
    std::vector<ProductPart> parts;
    std::vector<ggml_tensor*> sources;
    int64_t n_out = 0;
  };
  Product product_of(std::vector<Linear> linears, ggml_tensor* x);
  // Their outputs one after another, F32, with `residual` added if there is one.
  ggml_tensor* multiply(std::vector<Linear> linears, ggml_tensor* x, ggml_tensor* residual = nullptr);
  ggml_tensor* gated_of(const MlpWeights& mlp, ggml_tensor* x);
  // norm(x), with `residual` added if there is one.
  ggml_tensor* norm_add(const Norm& norm, ggml_tensor* x, ggml_tensor* residual = nullptr);
  ggml_tensor* rope_table(int layer);
  ggml_tensor* latent_queries(int layer, ggml_tensor* states);
  // Activations of each head's values, of partial results.
  ggml_tensor* latent_values(int layer, const AttendOptions& attention, ggml_tensor* partials);
  AttendOptions attend_options(int layer, int64_t n_rows) const;
  // What matrices of each head, one behind the other, make of activations of every head; their slots.
  ggml_tensor* multiply_heads(const Linear& linear, ggml_tensor* heads, int64_t n_in);
  ExpertGroups::Shape head_shape(int64_t n_heads) const;  // of so many heads of all rows
  ggml_tensor* head_groups(int64_t n_heads);
  // What all layers have of those rows' tokens, [n_embd_per_layer * n_layers, rows].
  ggml_tensor* per_layer(ggml_tensor* rows);

  const KernelSet& kernels_;
  const VisibleRows& rows_;
  CpuOps ops_;
  ggml_tensor* rope_table_ = nullptr;
  ggml_tensor* window_rope_table_ = nullptr;
  std::map<ggml_tensor*, ggml_tensor*> per_layer_;  // by rows
  ggml_tensor* head_groups_ = nullptr;
};

}  // namespace forerun
