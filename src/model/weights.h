// The weights of a model as ggml tensors. They live in a WeightStorage
// (weight_loader.h); nullptr: the model has no such tensor.
#pragma once

#include <ggml.h>

#include <optional>
#include <vector>

#include "model/config.h"

namespace forerun {

struct PackedMatrix;
struct GpuMatrix;

// y = (W x) * scale + bias
struct Linear {
  ggml_tensor* weight = nullptr;         // [n_in, n_out]; without data where one of these has it:
  const PackedMatrix* packed = nullptr;  // as our CPU kernels read it
  const GpuMatrix* gpu = nullptr;        // as our GPU kernels do
  ggml_tensor* scale = nullptr;          // [1]; block-scaled 4-bit floats come with one
  ggml_tensor* bias = nullptr;           // [n_out]
};

// norm(x) * weight + bias
struct Norm {
  NormKind kind = NormKind::kNone;
  ggml_tensor* weight = nullptr;  // [n]
  ggml_tensor* bias = nullptr;    // [n]
};

// Of attention with latent numbers (LatentConfig).
struct LatentWeights {
  Linear query_down;  // [n_embd, n_down], or none
  Norm query_norm;    // [n_down]
  Linear query;       // [n_down or n_embd, n_heads * (n_query + n_rotated)]
  Linear down;        // [n_embd, n + n_rotated]: latent numbers, and the key that is rotated
  Norm norm;          // [n]
  Linear query_up;    // [n_query, n, n_heads]: what queries compare with latent numbers
  Linear value_up;    // [n, n_value, n_heads]
};

struct AttentionWeights {
  Norm norm;       // [n_embd]
  Linear qkv;      // query, key and value in one matrix, or
  Linear q, k, v;  // one matrix each; k and v none of their own: see HeadsConfig, cells_layer()
  Linear out;      // [n_heads * head_dim, n_embd]
  std::optional<LatentWeights> latent;  // in place of these matrices
  Norm q_norm, k_norm;                  // [head_dim], or of all heads
  Norm post_norm;                       // [n_embd]
  // [n_heads]: the score of a cell more that every row sees, whose value is nothing; some models have it
  ggml_tensor* sinks = nullptr;
};

// MLPs of which a token uses a few. Matrices of all of them lie one behind the other.
struct ExpertWeights {
  Linear router;                      // [n_embd, n_experts]: which of them
  ggml_tensor* preference = nullptr;  // [n_experts]: added to what they are chosen by, no part of shares
  ggml_tensor* scales = nullptr;      // [n_experts]: of what they contribute
  Linear gate, up;                    // [n_embd, n_ff, n_experts], or
  Linear gate_up;                     // [n_embd, 2 n_ff, n_experts]: an expert's gates, then its ups
  Linear down;                        // [n_ff, n_embd, n_experts]
  Linear shared_share;  // [n_embd, 1]: how much of the MLP that all tokens use; may be none
  // Some models have norms of their own for each of the two, [n_embd].
  struct Norms {
    Norm router, experts;  // of what they read
    Norm made, shared;     // of what experts and the other MLP contribute
  };
  std::optional<Norms> norms;
};

// With experts: the MLP that all tokens use beside them, or nothing but the norm.
struct MlpWeights {
  Norm norm;       // [n_embd]
  Linear gate;     // [n_embd, n_ff]; not every model has one
  Linear up;       // [n_embd, n_ff]
  Linear down;     // [n_ff, n_embd]
  Norm post_norm;  // [n_embd]
  std::optional<ExpertWeights> experts;
};

// How what a layer has of each token for itself is mixed with the states, and added to them.
struct PerLayerWeights {
  Linear gate;        // [n_embd, n_embd_per_layer]
  Linear projection;  // [n_embd_per_layer, n_embd]
  Norm post_norm;     // [n_embd]
};

struct LayerWeights {
  AttentionWeights attention;
  MlpWeights mlp;
  std::optional<PerLayerWeights> per_layer;
  ggml_tensor* scale = nullptr;  // [1]: of the states behind the layer
};

// What layers have of tokens for themselves: of a table, and of the tokens' embeddings.
struct PerLayerInputs {
  Linear projection;  // [n_embd, n_embd_per_layer * n_layers]
  Norm norm;          // [n_embd_per_layer]
};

struct ModelWeights {
  std::vector<LayerWeights> layers;
  ggml_tensor* rope_factors = nullptr;  // [rope dims / 2]
  std::optional<PerLayerInputs> per_layer;
  Norm output_norm;  // [n_embd]
  Linear head;       // [n_embd, n_vocab]
};

}  // namespace forerun
