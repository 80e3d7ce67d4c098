// Rotation, storing in the KV cache, and attention, as graph nodes.
//
// Each computes every row by itself; see kernels.h for the order of attention.
#pragma once

#include <memory>

#include "model/config.h"
#include "model/cpu/op.h"
#include "model/cpu/visible_rows.h"
#include "model/kv_cache.h"
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

struct AttendOptions {
  AttentionShape shape;
  const ggml_tensor* keys;
  const ggml_tensor* values;
  const ggml_tensor* sinks;  // AttentionWeights
  const VisibleRows* rows;   // filled before every pass
  bool is_windowed;
  // Whether chunks of positions are computed apart, so that few rows keep many threads
  // busy. It makes no difference to the result.
  bool by_chunk;
  int n_chunks;  // at most, of by_chunk
};

// The partial results of every row: their size.
int64_t partial_floats(const AttendOptions& options);
// Source: queries. Result: partial results, F32 [partial_floats, n_rows].
std::unique_ptr<CpuOp> attend_op(const KernelSet& kernels, const AttendOptions& options);
// Source: partial results. Result: activations of n_embd_q numbers.
std::unique_ptr<CpuOp> merge_op(const KernelSet& kernels, const AttendOptions& options);

// Source: partial results. Result: activations of the first n numbers of every head, a row for each.
std::unique_ptr<CpuOp> merge_heads_op(const KernelSet& kernels, const AttendOptions& options, int64_t n);

}  // namespace forerun
