// What heads go through on their way to attention and to cells.
#pragma once

#include <ggml-cpu.h>

#include <algorithm>
#include <cstddef>

#include "model/config.h"
#include "model/cpu/op.h"

namespace forerun {

// Rotates the first n_dims numbers of a head.
inline void rotate(RopeLayout layout, int n_dims, const float* table, float* head) {
  const int half = n_dims / 2;
  const int step = layout == RopeLayout::kPairs ? 2 : 1;
  const int partner = layout == RopeLayout::kPairs ? 1 : half;
  for (int i = 0; i < half; ++i) {
    const float a = head[step * i];
    const float b = head[step * i + partner];
    head[step * i] = a * table[2 * i] - b * table[2 * i + 1];
    head[step * i + partner] = a * table[2 * i + 1] + b * table[2 * i];
  }
}

// Writes one head of a cell.
inline void store_head(ggml_tensor* cache, int64_t cell, int64_t first, int64_t n, const float* head) {
  std::byte* at = row_of<std::byte>(cache, cell) + ggml_row_size(cache->type, first);
  if (cache->type == GGML_TYPE_F32) {
    std::copy_n(head, n, reinterpret_cast<float*>(at));
  } else {
    ggml_get_type_traits_cpu(cache->type)->from_float(head, at, n);
  }
}

}  // namespace forerun
