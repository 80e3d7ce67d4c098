// The pieces that an architecture's blocks are made of, as ggml operations.
//
// One GraphBuilder builds one graph. Row counts and cell counts are baked into the
// shapes; everything that changes from pass to pass (states, positions, cells,
// masks) is an input tensor, so that the same graph serves again.
#pragma once

#include <ggml.h>

#include "model/config.h"
#include "model/kv_cache.h"
#include "model/weights.h"

namespace forerun {

struct PassInputs {
  ggml_tensor* states = nullptr;     // F32 [n_embd, n_rows]: the residual stream before the first block
  ggml_tensor* positions = nullptr;  // I32 [n_rows]
  ggml_tensor* cells = nullptr;      // I64 [n_rows]: where each row's key and value go
  ggml_tensor* mask = nullptr;       // F16 [n_kv, n_rows]: 0 where a row sees a cell, else -inf
  ggml_tensor* window_mask = nullptr;  // the same for layers with a sliding window
  ggml_tensor* logit_rows = nullptr;   // I32 [n_logits]: the rows whose logits are wanted
  ggml_tensor* hidden_rows = nullptr;  // I32 [n_hidden]
};

class GraphBuilder {
 public:
  struct Target {
    ggml_context* context;
    ggml_cgraph* graph;
  };
  GraphBuilder(Target target, const ModelConfig& config, const ModelWeights& weights,
               const KvCache& cache, const PassInputs& inputs, bool use_flash_attention);

  const ModelConfig& config() const { return config_; }
  const LayerWeights& layer(int index) const { return weights_.layers[static_cast<size_t>(index)]; }
  ggml_context* context() const { return target_.context; }

  // Root-mean-square norm over the first dimension, times `weight`.
  ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight);
  ggml_tensor* linear(const Linear& linear, ggml_tensor* x);
  ggml_tensor* add(ggml_tensor* a, ggml_tensor* b);

  struct QueryKeyValue {
    ggml_tensor* q;  // [head_dim, n_heads, n_rows]
    ggml_tensor* k;  // [head_dim, n_kv_heads, n_rows]
    ggml_tensor* v;  // [head_dim, n_kv_heads, n_rows]
  };
  QueryKeyValue project(const AttentionWeights& attention, ggml_tensor* x);
  // Rotates heads by their positions, with the frequencies of that layer.
  ggml_tensor* rope(ggml_tensor* heads, int layer);
  // Stores keys and values in the rows' cells, then lets every query look at the
  // cells its mask shows. Returns [n_heads * head_dim, n_rows].
  ggml_tensor* attend(int layer, const QueryKeyValue& qkv);

  // down(activation(gate(x)) * up(x))
  ggml_tensor* gated_mlp(const MlpWeights& mlp, ggml_tensor* x);

  // Final norm and head: logits [n_vocab, rows of x].
  ggml_tensor* head(ggml_tensor* x);

  void expand(ggml_tensor* tensor) { ggml_build_forward_expand(target_.graph, tensor); }

 private:
  struct Attention {
    ggml_tensor* q;  // [head_dim, n_rows, n_heads]
    ggml_tensor* k;  // [head_dim, n_kv, n_kv_heads]
    ggml_tensor* v;  // [head_dim, n_kv, n_kv_heads]
    ggml_tensor* mask;
    float scale;
  };
  ggml_tensor* flash_attention(const Attention& a);
  ggml_tensor* plain_attention(const Attention& a);
  ggml_tensor* cell_view(ggml_tensor* cache, int64_t n_kv);

  Target target_;
  const ModelConfig& config_;
  const ModelWeights& weights_;
  const KvCache& cache_;
  const PassInputs& inputs_;
  bool use_flash_attention_;
};

}  // namespace forerun
