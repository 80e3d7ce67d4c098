// Weights and nodes of graphs as our kernels take them.
#pragma once

#include <ggml.h>

#include <algorithm>
#include <vector>

#include "model/cuda/product.h"
#include "model/gpu_kernels.h"
#include "model/weights.h"

namespace forerun::cuda {

constexpr size_t kAlignment = 256;

inline Matrix matrix_of(const Linear& linear) {
  const GpuMatrix& packed = *linear.gpu;
  Matrix matrix = matrix_of(*format_of(packed.type), packed.n_in, packed.n_out);
  matrix.data = packed.data;
  return matrix;
}

inline const float* floats_of(const ggml_tensor* tensor) {
  return tensor == nullptr ? nullptr : static_cast<const float*>(tensor->data);
}

inline float* output_of(ggml_tensor* node) {
  return static_cast<float*>(node->data);
}

// The width of a node of so many bytes, as one with a row for each of the pass.
inline int64_t width_of(size_t n_bytes, int n_rows) {
  return static_cast<int64_t>((n_bytes + static_cast<size_t>(n_rows) - 1) / static_cast<size_t>(n_rows));
}

inline int n_rows_of(const ggml_tensor* node) {
  return static_cast<int>(node->ne[1]);
}

inline int64_t n_inputs_for(const std::vector<Linear>& readers) {
  int64_t n = 0;
  for (const Linear& reader : readers) {
    n = std::max(n, padded_inputs(*format_of(reader.gpu->type), reader.gpu->n_in));
  }
  return n;
}

}  // namespace forerun::cuda
