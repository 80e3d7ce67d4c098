// Attention, as graph nodes.
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
