#include "model/cpu/graph_builder.h"

#include <ggml-cpu.h>

namespace forerun {
namespace {

std::vector<Linear> projections(const AttentionWeights& weights) {
  if (weights.qkv.weight == nullptr) return {weights.q, weights.k, weights.v};
  return {weights.qkv};
}

GateActivation gate_activation(Activation activation) {
  switch (activation) {
    case Activation::kSilu: return GateActivation::kSilu;
    case Activation::kGelu: return GateActivation::kGelu;
    case Activation::kReluSquared: return GateActivation::kReluSquared;
    case Activation::kLimitedSwish: return GateActivation::kLimitedSwish;
  }
  return GateActivation::kSilu;
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
    table = ops_.add(context(), rope_table_op(rope, parts().weights.rope_factors),
                     {GGML_TYPE_F32, rope.n_dims, parts().inputs.positions->ne[0]},
                     {parts().inputs.positions});
  }
  return table;
}

ggml_tensor* CpuGraphBuilder::queries(int layer, ggml_tensor* states) {
  const AttentionWeights& weights = this->layer(layer).attention;
  ggml_tensor* projected = multiply(projections(weights), activations(weights.norm, states));
  if (weights.q_norm.kind != NormKind::kNone && config().head_norms == HeadNorms::kTogether) {
    projected = ops_.add(context(), norm_together_op(kernels_, config(), weights),
                         {GGML_TYPE_F32, projected->ne[0], projected->ne[1]}, {projected});
  }
  const RopeConfig& rope = config().rope_of(layer);
  const HeadsOptions heads{.config = &config(),
                           .weights = &weights,
                           .rope_layout = rope.layout,
                           .n_rope_dims = config().rotates(layer) ? rope.n_dims : 0,
                           .keys = parts().cache.keys(layer),
                           .values = parts().cache.values(layer)};
  std::vector<ggml_tensor*> sources{projected, rope_table(layer), parts().inputs.cells};
  if (parts().inputs.temperatures != nullptr) sources.push_back(parts().inputs.temperatures);
  return ops_.add(context(), heads_op(kernels_, heads),
                  {GGML_TYPE_F32, config().n_embd_q(), states->ne[1]}, std::move(sources));
}

// Few rows share the cells they read, a chunk of cells at a time; many are parted.
constexpr int64_t kMaxRowsByChunk = 8;

ggml_tensor* CpuGraphBuilder::attend(int layer, ggml_tensor* queries) {
  const int64_t n_rows = queries->ne[1];
  const AttendOptions attention{.shape = {.head_dim = config().head_dim,
                                          .n_heads = config().n_heads,
                                          .n_kv_heads = config().n_kv_heads,
                                          .scale = config().attention_scale,
                                          .soft_cap = config().attention_softcap},
                                .keys = parts().cache.keys(layer),
                                .values = parts().cache.values(layer),
                                .sinks = this->layer(layer).attention.sinks,
                                .rows = &rows_,
                                .is_windowed = config().is_windowed(layer),
                                .by_chunk = n_rows <= kMaxRowsByChunk,
                                .n_chunks = (parts().n_kv + kAttentionChunk - 1) / kAttentionChunk};
  ggml_tensor* partials = ops_.add(context(), attend_op(kernels_, attention),
                                   {GGML_TYPE_F32, partial_floats(attention), n_rows}, {queries});
  const ActivationLayout layout{kernels_, config().n_embd_q(), n_rows};
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

ggml_tensor* CpuGraphBuilder::mixture(const MlpWeights& mlp, ggml_tensor* states) {
  const ExpertWeights& experts = *mlp.experts;
  const int64_t n_embd = states->ne[0], n_rows = states->ne[1];
  const ExpertGroups::Shape shape{.n_rows = n_rows,
                                  .n_used = config().experts.n_used,
                                  .n_experts = config().experts.n_all,
                                  .rows_together = kernels_.rows_together};
  ggml_tensor* x = activations(mlp.norm, states);
  const auto route_bytes = static_cast<int64_t>(sizeof(Route)) * shape.n_used;
  ggml_tensor* routes = ops_.add(context(), route_op(config().experts, experts.preference),
                                 {GGML_TYPE_I8, route_bytes, n_rows}, {multiply({experts.router}, x)});
  ggml_tensor* groups =
      ops_.add(context(), group_op(shape), {GGML_TYPE_I32, shape.n_numbers(), 1}, {routes});

  ggml_tensor* gathered = x;
  if (n_rows > 1) {
    const ActivationLayout layout{kernels_, n_embd, shape.most_slots()};
    gathered = ops_.add(context(), gather_op(kernels_, shape, n_embd), layout.output(), {x, groups});
  }
  Product in = product_of({experts.gate, experts.up}, gathered);
  in.sources.push_back(groups);
  const ActivationLayout layout{kernels_, config().experts.n_ff, shape.most_slots()};
  ggml_tensor* gated = ops_.add(
      context(),
      expert_gated_op(kernels_, gate_activation(config().activation), shape, std::move(in.parts)),
      layout.output(), std::move(in.sources));
  Product out = product_of({experts.down}, gated);
  out.sources.push_back(groups);
  ggml_tensor* made = ops_.add(context(), expert_product_op(kernels_, shape, out.parts[0]),
                               {GGML_TYPE_F32, n_embd, shape.most_slots()}, std::move(out.sources));

  std::vector<ggml_tensor*> sources = {states, made, routes, groups};
  if (mlp.down.weight != nullptr) {
    sources.push_back(multiply({mlp.down}, gated_of(mlp, x)));
    if (experts.shared_share.weight != nullptr) sources.push_back(multiply({experts.shared_share}, x));
  }
  return ops_.add(context(), combine_op(shape, config().residual_scale), {GGML_TYPE_F32, n_embd, n_rows},
                  std::move(sources));
}

ggml_tensor* CpuGraphBuilder::contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                                         ggml_tensor* states) {
  if (post_norm.kind == NormKind::kNone) return multiply({linear}, x, states);
  ggml_tensor* out = multiply({linear}, x);
  return ops_.add(context(), norm_add_op(kernels_, post_norm, config().norm_eps),
                  {GGML_TYPE_F32, out->ne[0], out->ne[1]}, {out, states});
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
