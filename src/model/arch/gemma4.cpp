// Gemma 4: what Gemma 3 has, and layers of two kinds whose heads, rotation and MLPs differ. Values are
// normed; in layers that see everything they may be the keys. The last layers of the small models look
// at cells of earlier ones, and every layer of these adds something that it has of each token for
// itself. In its mixture the experts and the MLP that all tokens use have norms of their own. States are
// multiplied with a number behind each layer.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "model/arch/architecture.h"
#include "model/arch/families.h"

namespace forerun {
namespace {

void read_sharing(const ConfigReader& reader, ModelConfig& config) {
  const int n_sharing = reader.get_count_or_none("attention.shared_kv_layers");
  if (n_sharing == 0) return;
  config.first_sharing_cells = config.n_layers - n_sharing;
  for (int layer = std::max(0, *config.first_sharing_cells); layer < config.n_layers; ++layer) {
    const int donor = *config.first_sharing_cells > 0 ? config.cells_layer(layer) : -1;
    if (donor >= 0 && config.is_windowed(donor) == config.is_windowed(layer)) continue;
    fail(ErrorCode::kInvalidFile,
         "{}: no layer before the last {} has cells that layer {} could look at",
         reader.key("attention.shared_kv_layers"), n_sharing, layer);
  }
}

class Gemma4Architecture final : public Architecture {
 public:
  static constexpr float kLogitCap = 30.0f;

  std::string_view name() const override { return "gemma4"; }

  ModelConfig config(const GgufMetadata& metadata) const override {
    ModelConfig config =
        read_mixture_config(metadata, RopeLayout::kHalves, NormKind::kRms, LayerKinds::kWindowedDiffer);
    config.experts.n_ff_shared = config.n_ff;
    config.experts.has_norms = true;
    const ConfigReader reader(metadata, config.architecture);
    config.activation = Activation::kGelu;
    config.has_post_norms = true;
    config.has_head_norms = true;
    config.has_value_norms = true;
    config.may_reuse_keys = true;
    config.has_layer_scales = true;
    config.embedding_scale = std::sqrt(static_cast<float>(config.n_embd));
    config.attention_scale = 1.0f;
    config.logit_softcap = read_cap(reader, "final_logit_softcapping", kLogitCap);
    config.window_rope.has_factors = false;
    config.n_embd_per_layer = reader.get_count_or_none("embedding_length_per_layer_input");
    read_sharing(reader, config);
    return config;
  }

  // Projections in one matrix, and layers with experts among others: no published model has them.
  bool computes(const GgufFile& file) const override {
    const auto is_router = [](const GgufTensor& t) { return t.name.ends_with(".ffn_gate_inp.weight"); };
    const ModelConfig ours = config(file.metadata());
    const auto n_mixtures = std::ranges::count_if(file.tensors(), is_router);
    return file.find_tensor("blk.0.attn_qkv.weight") == nullptr &&
           n_mixtures == (ours.experts.n_all > 0 ? ours.n_layers : 0);
  }

  LayerWeights declare_layer(WeightLoader& loader, const ModelConfig& config, int layer) const override {
    LayerWeights weights = Architecture::declare_layer(loader, config, layer);
    const std::string prefix = layer_prefix(layer);
    weights.scale = loader.optional_vector(prefix + "layer_output_scale.weight", 1);
    if (const int n = config.n_embd_per_layer; n > 0) {
      weights.per_layer = {
          .gate = loader.linear(prefix + "inp_gate", config.n_embd, n),
          .projection = loader.linear(prefix + "proj", n, config.n_embd),
          .post_norm = declare_norm(loader, config, prefix + "post_norm", config.n_embd)};
    }
    return weights;
  }

  ggml_tensor* mlp(GraphBuilder& graph, int layer, const RowStream& rows) const override {
    ggml_tensor* states = Architecture::mlp(graph, layer, rows);
    if (graph.layer(layer).per_layer) states = graph.add_per_layer(layer, states, rows.rows);
    return without_mlp(graph, layer, states);
  }
  ggml_tensor* without_mlp(GraphBuilder& graph, int layer, ggml_tensor* states) const override {
    ggml_tensor* scale = graph.layer(layer).scale;
    return scale != nullptr ? graph.scaled(states, scale) : states;
  }

 protected:
  std::string_view shared_mlp() const override { return ""; }
};

}  // namespace

const Architecture& gemma4_architecture() {
  static const Gemma4Architecture architecture;
  return architecture;
}

}  // namespace forerun
