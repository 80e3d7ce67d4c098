// What attention with latent numbers (LatentConfig) does beside products, as graph nodes.
//
// Each head has matrices of its own, as experts have: a row's heads are rows of their own there, each of
// which uses the one expert that is its head (expert_ops.h).
#pragma once

#include <memory>

#include "model/config.h"
#include "model/cpu/expert_ops.h"
#include "model/cpu/op.h"
#include "model/weights.h"

namespace forerun {

// Routes of all heads of as many rows: row r's head h uses expert h. No source that it reads.
std::unique_ptr<CpuOp> head_routes_op(int n_heads);

// Activations of n numbers of every head, a row for each, of queries that have `stride` for each head,
// F32.
std::unique_ptr<CpuOp> split_heads_op(const KernelSet& kernels, int n_heads, int64_t stride, int64_t n);

// Queries and the cells' keys. Sources: queries [n_heads * (n_query + n_rotated), n_rows], what their
// first parts were made to (slots), groups, latent numbers and rotated keys [n + n_rotated, n_rows],
// rope table, cells. Result: queries [n_heads * (n + n_rotated), n_rows].
struct LatentHeadsOptions {
  const ModelConfig* config;
  const LatentWeights* weights;
  ExpertGroups::Shape shape;
  ggml_tensor* keys;  // of the cache
};
std::unique_ptr<CpuOp> latent_heads_op(const KernelSet& kernels, const LatentHeadsOptions& options);

// Activations of all heads of a row, one after the other; sources: slots, groups.
std::unique_ptr<CpuOp> join_heads_op(const KernelSet& kernels, const ExpertGroups::Shape& shape,
                                     int n_heads, int64_t n);

}  // namespace forerun
