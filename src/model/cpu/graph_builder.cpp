#include "model/cpu/graph_builder.h"

#include <ggml-cpu.h>

namespace forerun {
namespace {

std::vector<Linear> projections(const AttentionWeights& weights) {
  if (weights.qkv.weight != nullptr) return {weights.qkv};
  std::vector<Linear> all = {weights.q, weights.k, weights.v};
  std::erase_if(all, [](const Linear& linear) { return linear.weight == nullptr; });
  return all;
}

class CpuProgram final : public PassProgram {
 public:
  CpuProgram(Device& device, CpuOps ops, ggml_cgraph* graph)
      : device_(device), ops_(std::move(ops)), steps_(ops_.steps(graph)) {}
  void run() override { device_.compute(steps_); }

 private:
  Device& device_;
  CpuOps ops_;
  std::vector<CpuStep> steps_;
};

}  // namespace

std::unique_ptr<PassProgram> CpuGraphBuilder::finish() {
  return std::make_unique<CpuProgram>(parts().device, std::move(ops_), parts().graph);
}

ggml_tensor* CpuGraphBuilder::activations(const Norm& norm, ggml_tensor* states) {
  const ActivationLayout layout{kernels_, states->ne[0], states->ne[1]};
  return ops_.add(context(), norm_op(kernels_, norm, config().norm_eps), layout.output(), {states});
}

CpuGraphBuilder::Product CpuGraphBuilder::product_of(std::vector<Linear> linears, ggml_tensor* x) {
  Product product{.parts = {}, .sources = {x}};
  std::vector<ggml_type> converted;  // by source, from the second on
  for (Linear& linear : linears) {
    const PackedMatrix& matrix = *linear.packed;
    const ActivationLayout layout{kernels_, matrix.n_in, x->ne[1]};
    product.n_out += matrix.n_out;
    ProductPart part{.linear = linear, .source = 0};
    if (matrix.format == nullptr && !matrix.reads_floats()) {
      const auto known = std::find(converted.begin(), converted.end(), matrix.dot_type());
      part.source = 1 + static_cast<int>(known - converted.begin());
      if (known == converted.end()) {
        converted.push_back(matrix.dot_type());
        const auto row_bytes = static_cast<int64_t>(ggml_row_size(matrix.dot_type(), matrix.n_in));
        product.sources.push_back(ops_.add(context(), convert_op(layout, matrix.dot_type()),
                                           {GGML_TYPE_I8, row_bytes, x->ne[1]}, {x}));
      }
    }
    product.parts.push_back(std::move(part));
  }
  return product;
}

ggml_tensor* CpuGraphBuilder::multiply(std::vector<Linear> linears, ggml_tensor* x,
                                       ggml_tensor* residual) {
  Product product = product_of(std::move(linears), x);
  if (residual != nullptr) product.sources.push_back(residual);
  return ops_.add(context(), product_op(kernels_, std::move(product.parts), residual != nullptr),
                  {GGML_TYPE_F32, product.n_out, x->ne[1]}, std::move(product.sources));
}

ggml_tensor* CpuGraphBuilder::rope_table(int layer) {
  const RopeConfig& rope = config().rope_of(layer);
  ggml_tensor*& table = config().is_windowed(layer) ? window_rope_table_ : rope_table_;
  if (table == nullptr) {
    table = ops_.add(
        context(), rope_table_op(rope, rope.has_factors ? parts().weights.rope_factors : nullptr),
        {GGML_TYPE_F32, rope.n_dims, parts().inputs.positions->ne[0]}, {parts().inputs.positions});
  }
  return table;
}

ggml_tensor* CpuGraphBuilder::queries(int layer, ggml_tensor* states) {
  if (config().latent.n > 0) return latent_queries(layer, states);
  const AttentionWeights& weights = this->layer(layer).attention;
  ggml_tensor* projected = multiply(projections(weights), activations(weights.norm, states));
  if (weights.q_norm.kind != NormKind::kNone && config().head_norms == HeadNorms::kTogether) {
    projected = ops_.add(context(), norm_together_op(kernels_, config(), weights),
                         {GGML_TYPE_F32, projected->ne[0], projected->ne[1]}, {projected});
  }
  const RopeConfig& rope = config().rope_of(layer);
  const HeadsOptions heads{.config = &config(),
                           .heads = config().heads_of(layer),
                           .weights = &weights,
                           .has_cells = config().has_cells(layer),
                           .rope_layout = rope.layout,
                           .n_rope_dims = config().rotates(layer) ? rope.n_dims : 0,
                           .keys = parts().cache.keys(layer),
                           .values = parts().cache.values(layer)};
  std::vector<ggml_tensor*> sources{projected, rope_table(layer), parts().inputs.cells};
  if (config().has_temperature(layer)) sources.push_back(parts().inputs.temperatures);
  return ops_.add(context(), heads_op(kernels_, heads),
                  {GGML_TYPE_F32, heads.heads.n_embd_q(), states->ne[1]}, std::move(sources));
}

// Few rows share the cells they read, a chunk of cells at a time; many are parted.
constexpr int64_t kMaxRowsByChunk = 8;

AttendOptions CpuGraphBuilder::attend_options(int layer, int64_t n_rows) const {
  const HeadsConfig& heads = config().heads_of(layer);
  return {.shape = {.head_dim = heads.dim,
                    .n_heads = heads.n,
                    .n_kv_heads = heads.n_kv,
                    .scale = config().attention_scale,
                    .soft_cap = config().attention_softcap},
          .keys = parts().cache.keys(layer),
          .values = parts().cache.values(layer),
          .sinks = this->layer(layer).attention.sinks,
          .rows = &rows_,
          .is_windowed = config().is_windowed(layer),
          .by_chunk = n_rows <= kMaxRowsByChunk,
          .n_chunks = (parts().n_kv + kAttentionChunk - 1) / kAttentionChunk};
}

ggml_tensor* CpuGraphBuilder::attend(int layer, ggml_tensor* queries) {
  const int64_t n_rows = queries->ne[1];
  const AttendOptions attention = attend_options(layer, n_rows);
  ggml_tensor* partials = ops_.add(context(), attend_op(kernels_, attention),
                                   {GGML_TYPE_F32, partial_floats(attention), n_rows}, {queries});
  if (config().latent.n > 0) return latent_values(layer, attention, partials);
  const ActivationLayout layout{kernels_, queries->ne[0], n_rows};
  return ops_.add(context(), merge_op(kernels_, attention), layout.output(), {partials});
}

ggml_tensor* CpuGraphBuilder::gated(const MlpWeights& mlp, ggml_tensor* states) {
  return gated_of(mlp, activations(mlp.norm, states));
}

ggml_tensor* CpuGraphBuilder::gated_of(const MlpWeights& mlp, ggml_tensor* x) {
  const bool has_gate = mlp.gate.weight != nullptr;
  Product product = product_of(has_gate ? std::vector{mlp.gate, mlp.up} : std::vector{mlp.up}, x);
  const ActivationLayout layout{kernels_, mlp.up.packed->n_out, x->ne[1]};
  return ops_.add(context(),
                  gated_op(kernels_, gate_activation(config().activation), std::move(product.parts)),
                  layout.output(), product.sources);
}

ggml_tensor* CpuGraphBuilder::norm_add(const Norm& norm, ggml_tensor* x, ggml_tensor* residual) {
  std::vector<ggml_tensor*> sources = {x};
  if (residual != nullptr) sources.push_back(residual);
  return ops_.add(context(), norm_add_op(kernels_, norm, config().norm_eps),
                  {GGML_TYPE_F32, x->ne[0], x->ne[1]}, std::move(sources));
}

ggml_tensor* CpuGraphBuilder::contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                                         ggml_tensor* states) {
  if (post_norm.kind == NormKind::kNone) return multiply({linear}, x, states);
  return norm_add(post_norm, multiply({linear}, x), states);
}

ggml_tensor* CpuGraphBuilder::per_layer(ggml_tensor* rows) {
  ggml_tensor*& found = per_layer_[rows];
  if (found != nullptr) return found;
  if (rows != nullptr) return found = copy_rows(per_layer(nullptr), rows);
  const PerLayerInputs& weights = *parts().weights.per_layer;
  ggml_tensor* of_table = parts().inputs.per_layer;
  ggml_tensor* projected =
      multiply({weights.projection}, activations(Norm{}, parts().inputs.embeddings));
  return found =
             ops_.add(context(),
                      per_layer_op(kernels_, weights.norm, config().norm_eps, config().n_embd_per_layer),
                      {GGML_TYPE_F32, of_table->ne[0], of_table->ne[1]}, {projected, of_table});
}

ggml_tensor* CpuGraphBuilder::add_per_layer(int layer, ggml_tensor* states, ggml_tensor* rows) {
  const PerLayerWeights& weights = *this->layer(layer).per_layer;
  const int64_t n = config().n_embd_per_layer;
  const ActivationLayout layout{kernels_, n, states->ne[1]};
  ggml_tensor* gates = multiply({weights.gate}, activations(Norm{}, states));
  ggml_tensor* mixed =
      ops_.add(context(), gate_op(kernels_, gate_activation(config().activation), layer * n),
               layout.output(), {gates, per_layer(rows)});
  return contribute(weights.projection, mixed, weights.post_norm, states);
}

ggml_tensor* CpuGraphBuilder::scaled(ggml_tensor* states, ggml_tensor* factor) {
  return ops_.add(context(), scale_op(factor), {GGML_TYPE_F32, states->ne[0], states->ne[1]}, {states});
}

ggml_tensor* CpuGraphBuilder::head(ggml_tensor* states) {
  ggml_tensor* logits =
      multiply({parts().weights.head}, activations(parts().weights.output_norm, states));
  const float cap = config().logit_softcap;
  if (cap <= 0.0f) return logits;
  return ops_.add(context(), soft_cap_op(cap), {GGML_TYPE_F32, logits->ne[0], logits->ne[1]}, {logits});
}

ggml_tensor* CpuGraphBuilder::copy_rows(ggml_tensor* states, ggml_tensor* rows) {
  if (rows == nullptr) {
    return ops_.add(context(), copy_rows_op(), {GGML_TYPE_F32, states->ne[0], states->ne[1]}, {states});
  }
  return ops_.add(context(), copy_rows_op(), {GGML_TYPE_F32, states->ne[0], rows->ne[0]},
                  {states, rows});
}

}  // namespace forerun
