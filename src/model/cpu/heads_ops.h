// What becomes of heads before attention: rotation, and storing in the KV cache, as graph nodes.
//
// Each computes every row by itself.
#pragma once

#include <memory>

#include "model/config.h"
#include "model/cpu/op.h"
#include "model/kernels/kernels.h"
#include "model/weights.h"

namespace forerun {

// Cosines and sines of every row's position: F32 [n_dims, n_rows], a pair per
// frequency. Source: positions, I32 [n_rows].
std::unique_ptr<CpuOp> rope_table_op(const RopeConfig& rope, const ggml_tensor* factors);

// What becomes of a layer's projections between their product and attention: norms of
// query and key heads by themselves, rotation, the scale of queries; keys and values go to
// the rows' cells. Sources: projections [n_embd_q + 2 n_embd_kv, n_rows] (less what has no
// matrix of its own), rope table, cells
// (I64 [n_rows]), and in models that have them temperatures (F32 [n_rows]). Result: queries
// [n_embd_q, n_rows].
struct HeadsOptions {
  const ModelConfig* config;
  HeadsConfig heads;
  const AttentionWeights* weights;
  bool has_cells;  // or there are queries alone
  RopeLayout rope_layout;
  int n_rope_dims;
  ggml_tensor* keys;  // of the cache
  ggml_tensor* values;
};
std::unique_ptr<CpuOp> heads_op(const KernelSet& kernels, const HeadsOptions& options);

}  // namespace forerun
