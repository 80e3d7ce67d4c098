// Graphs of ggml's own operations, for devices that ggml computes on.
#pragma once

#include <map>

#include "model/graph_builder.h"

namespace forerun {

class GgmlGraphBuilder final : public GraphBuilder {
 public:
  GgmlGraphBuilder(const GraphParts& parts, bool use_flash_attention)
      : GraphBuilder(parts), use_flash_attention_(use_flash_attention) {}

  ggml_tensor* queries(int layer, ggml_tensor* states) override;  // [head_dim, n_heads, n_rows]
  ggml_tensor* attend(int layer, ggml_tensor* queries) override;  // [n_heads * head_dim, n_rows]
  ggml_tensor* gated(const MlpWeights& mlp, ggml_tensor* states) override;  // [n_ff, n_rows]
  ggml_tensor* contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                          ggml_tensor* states) override;
  ggml_tensor* mixture(const MlpWeights& mlp, ggml_tensor* states) override;
  ggml_tensor* add_per_layer(int layer, ggml_tensor* states, ggml_tensor* rows) override;
  ggml_tensor* scaled(ggml_tensor* states, ggml_tensor* factor) override;
  ggml_tensor* head(ggml_tensor* states) override;
  ggml_tensor* copy_rows(ggml_tensor* states, ggml_tensor* rows) override;
  std::unique_ptr<PassProgram> finish() override;

 private:
  struct QueryKeyValue {
    ggml_tensor* q;  // [head_dim, n_heads, n_rows]
    ggml_tensor* k;  // [head_dim, n_kv_heads, n_rows]; nullptr: the layer has no cells
    ggml_tensor* v;  // [head_dim, n_kv_heads, n_rows]; the same
  };
  struct Attention {
    ggml_tensor* q;  // [head_dim, n_rows, n_heads]
    ggml_tensor* k;  // [head_dim, n_kv, n_kv_heads]
    ggml_tensor* v;  // [head_dim, n_kv, n_kv_heads]
    ggml_tensor* mask;
    ggml_tensor* sinks;  // [n_heads], or nullptr
    float scale;
    float soft_cap;
  };
  // Over the first dimension.
  ggml_tensor* norm(ggml_tensor* x, const Norm& norm);
  // Of queries or keys.
  ggml_tensor* norm_heads(ggml_tensor* heads, const Norm& norm);
  ggml_tensor* activated(ggml_tensor* x);
  ggml_tensor* linear(const Linear& linear, ggml_tensor* x);
  QueryKeyValue project(int layer, ggml_tensor* x);
  ggml_tensor* rope(ggml_tensor* heads, int layer);
  ggml_tensor* latent_queries(int layer, ggml_tensor* states);
  // Each head's values, [n_heads * n_value, n_rows], of what came out of attention, [n, n_heads,
  // n_rows].
  ggml_tensor* latent_values(int layer, ggml_tensor* out);
  void store(ggml_tensor* cache, ggml_tensor* heads);
  // Of a mixture: which experts rows use, I32 [n_used, n_rows], and their parts, [1, n_used, n_rows].
  struct Routes {
    ggml_tensor* chosen;
    ggml_tensor* shares;
  };
  Routes routes(const ExpertWeights& experts, ggml_tensor* x);
  ggml_tensor* experts_of(const ExpertWeights& experts, const Routes& routes, ggml_tensor* x);
  ggml_tensor* activated(ggml_tensor* gate, ggml_tensor* up);
  ggml_tensor* flash_attention(const Attention& a);
  ggml_tensor* plain_attention(const Attention& a);
  ggml_tensor* cell_view(ggml_tensor* cache, const HeadsConfig& heads, int64_t n);
  // What all layers have of those rows' tokens: [n_embd_per_layer, rows, n_layers].
  ggml_tensor* per_layer(ggml_tensor* rows);

  bool use_flash_attention_;
  std::map<ggml_tensor*, ggml_tensor*> per_layer_;  // by rows
};

}  // namespace forerun
