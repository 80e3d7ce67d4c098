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

struct AttentionWeights {
  Norm norm;            // [n_embd]
  Linear qkv;           // query, key and value in one matrix, or
  Linear q, k, v;       // one matrix each
  Linear out;           // [n_heads * head_dim, n_embd]
  Norm q_norm, k_norm;  // [head_dim], or of all heads
  Norm post_norm;       // [n_embd]
  // [n_heads]: the score of a cell more that every row sees, whose value is nothing; some models have it
  ggml_tensor* sinks = nullptr;
};

// MLPs of which a token uses a few. Matrices of all of them lie one behind the other.
struct ExpertWeights {
  Linear router;                      // [n_embd, n_experts]: which of them
  ggml_tensor* preference = nullptr;  // [n_experts]: added to what they are chosen by, no part of shares
  Linear gate, up;                    // [n_embd, n_ff, n_experts]
  Linear down;                        // [n_ff, n_embd, n_experts]
  Linear shared_share;  // [n_embd, 1]: how much of the MLP that all tokens use; may be none
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

struct LayerWeights {
  AttentionWeights attention;
  MlpWeights mlp;
};

struct ModelWeights {
  std::vector<LayerWeights> layers;
  ggml_tensor* rope_factors = nullptr;  // [rope dims / 2]
  Norm output_norm;                     // [n_embd]
  Linear head;                          // [n_embd, n_vocab]
};

}  // namespace forerun
