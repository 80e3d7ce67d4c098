// Norms, as graph nodes.
//
// Each computes every row by itself; see kernels.h.
#pragma once

#include <memory>

#include "model/config.h"
#include "model/cpu/op.h"
#include "model/kernels/kernels.h"
#include "model/weights.h"

namespace forerun {

// y = norm(x) over n numbers; y may be x.
void apply_norm(const KernelSet& kernels, const Norm& norm, float eps, int64_t n, const float* x,
                float* y);

// Activations (ActivationLayout) from states [n, n_rows], normed if there is a norm.
std::unique_ptr<CpuOp> norm_op(const KernelSet& kernels, const Norm& norm, float eps);

// norm(x) + residual; sources: x and, if there is one, the residual.
std::unique_ptr<CpuOp> norm_add_op(const KernelSet& kernels, const Norm& norm, float eps);

// What layers have of tokens for themselves: of projections of their embeddings [n * n_layers, n_rows],
// normed layer by layer, and of what the table has, the same shape. Sources: these.
std::unique_ptr<CpuOp> per_layer_op(const KernelSet& kernels, const Norm& norm, float eps, int64_t n);

// Projections [n_embd_q + 2 n_embd_kv, n_rows] with a row's queries normed together, and its keys. What
// is named outlives the node.
std::unique_ptr<CpuOp> norm_together_op(const KernelSet& kernels, const ModelConfig& config,
                                        const AttentionWeights& weights);

}  // namespace forerun
