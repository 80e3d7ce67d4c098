// What is done to rows between products and attention. Each kernel adds the parts of the product before
// it in order, so that nothing else has to; a row's bits do not depend on the others.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "model/cuda/product.h"

namespace forerun::cuda {

// The outputs of one matrix, which may be one of several in a product.
struct Segment {
  Parts parts;
  int first = 0;  // its first output in the product
  int n = 0;
  const float* scale = nullptr;  // [1], or none
  const float* bias = nullptr;   // [n], or none
};

// Caches hold F16, or ggml's Q8_0: blocks of a scale (F16) and 32 integers that it multiplies.
constexpr int kQ8Numbers = 32;
constexpr int kQ8Bytes = 34;
__host__ __device__ constexpr int64_t cache_bytes(ggml_type type, int64_t n_numbers) {
  return type == GGML_TYPE_Q8_0 ? n_numbers / kQ8Numbers * kQ8Bytes : n_numbers * 2;
}

struct RowsShape {
  int n_rows;
  int n;  // numbers of a row
};

// x = norm(states + added) * weight; `sum` gets states + added, where there is something to add.
// `added` may have no parts. sum may be the same as states.
void add_norm(const float* states, const Segment& added, const float* weight, float eps, RowsShape shape,
              float* sum, const Operand& x, cudaStream_t stream);
// sum = states + norm(added) * weight.
void norm_add(const float* states, const Segment& added, const float* weight, float eps, RowsShape shape,
              float* sum, cudaStream_t stream);
// Rows `chosen` (all: nullptr) of states + added.
void copy_rows(const float* states, const Segment& added, const int32_t* chosen, RowsShape shape,
               float* to, cudaStream_t stream);

enum class Gate { kSilu, kGelu };  // gelu: the tanh approximation
// x = gate(a) * b. Row i is row places[i] of x, or row i where there are no places.
void gated(Gate gate, const Segment& a, const Segment& b, RowsShape shape, const int32_t* places,
           const Operand& x, cudaStream_t stream);

// The sum of the parts, with scale and bias, and cap * tanh(y / cap) of it where cap > 0: logits.
void finish(const Segment& segment, int n_rows, float cap, float* y, cudaStream_t stream);

// Norms of heads (where there is a weight), rotation, storing: queries to q [row][head][head_dim], keys
// and values to their cells.
struct HeadsWork {
  Segment q, k, v;
  int n_rows, n_heads, n_kv_heads, head_dim;
  const float* q_norm;  // [head_dim], or none
  const float* k_norm;
  float eps;
  float q_scale = 1;   // of queries, behind rotation
  bool rotates_pairs;  // neighbours; else the halves of what is rotated
  int n_rope_dims;
  const float2* rope;    // [row][n_rope_dims / 2]: cosine, sine
  const int64_t* cells;  // [row]
  ggml_type cache_type;  // F16 or Q8_0
  std::byte* keys;       // of this layer: [cell][kv head][head_dim]
  std::byte* values;
  int64_t cache_row_bytes;  // from cell to cell
  __half* q_out;
};
void heads(const HeadsWork& work, cudaStream_t stream);

// cosine and sine of every row and pair, as the CPU computes them (YaRN included).
struct RopeTable {
  int n_dims;
  float freq_base, freq_scale, ext_factor, magnitude;
  float yarn_low, yarn_high;  // corrected dimensions
  const float* factors;       // [n_dims / 2], or none
};
void rope_table(const RopeTable& table, const int32_t* positions, int n_rows, float2* to,
                cudaStream_t stream);

}  // namespace forerun::cuda
