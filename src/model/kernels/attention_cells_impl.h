// Cells of a KV cache as floats: as they lie, for values, and transposed, for keys, so that
// a vector has one number of several cells.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/half_impl.h"
#include "model/kernels/kernels.h"

namespace forerun::kernels::FORERUN_ISA {

// How many cells ahead to ask for: a fifth less time where the cache is not in L2.
constexpr int kPrefetchCells = 32;
constexpr size_t kCacheLine = 64;

inline int smaller(int a, int b) {
  return a < b ? a : b;
}
inline int larger(int a, int b) {
  return a > b ? a : b;
}
inline int round_up_to_lanes(int n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// Positions begin <= p < end, from the first one of the chunk.
struct Range {
  int begin, end;
};
// Lies within `a`, wherever `b` is.
inline Range intersect(Range a, Range b) {
  const int begin = smaller(larger(a.begin, b.begin), a.end);
  return {begin, larger(begin, smaller(a.end, b.end))};
}
inline bool is_empty(Range r) {
  return r.begin == r.end;
}

// kLanes numbers of a head from `d` on, or the last n of them with zeros behind.
struct HalfHead {
  static Floats load_at(const std::byte* head, int d) {
    return load_half(reinterpret_cast<const uint16_t*>(head) + d);
  }
  static Floats load_tail_at(const std::byte* head, int d, int n) {
    uint16_t padded[kLanes] = {};
    memcpy(padded, head + d * sizeof(uint16_t), n * sizeof(uint16_t));
    return load_half(padded);
  }
};
struct FloatHead {
  static Floats load_at(const std::byte* head, int d) {
    return load(reinterpret_cast<const float*>(head) + d);
  }
  static Floats load_tail_at(const std::byte* head, int d, int n) {
    float padded[kLanes] = {};
    memcpy(padded, head + d * sizeof(float), n * sizeof(float));
    return load(padded);
  }
};
// ggml's blocks: a scale of half precision and 32 integers. There is no tail.
struct Q8Head {
  static constexpr int kBlock = 32;
  static constexpr size_t kBlockBytes = sizeof(uint16_t) + kBlock;
  static_assert(kBlock % kLanes == 0);
  static Floats load_at(const std::byte* head, int d) {
    const std::byte* block = head + d / kBlock * kBlockBytes;
    uint16_t scale;
    memcpy(&scale, block, sizeof(scale));
    const std::byte* quants = block + sizeof(scale) + d % kBlock;
    return mul(load_int8(reinterpret_cast<const int8_t*>(quants)), broadcast(half_to_float(scale)));
  }
  static Floats load_tail_at(const std::byte*, int, int) { return broadcast(0.0f); }
};

inline size_t head_bytes(ggml_type type, int head_dim) {
  switch (type) {
    case GGML_TYPE_F16: return head_dim * sizeof(uint16_t);
    case GGML_TYPE_Q8_0: return head_dim / Q8Head::kBlock * Q8Head::kBlockBytes;
    default: return head_dim * sizeof(float);
  }
}

// Where position p of a row lies.
inline int32_t cell_of(const VisibleCells& row, int32_t p) {
  return p < row.n_shared ? row.shared[p] : row.own[p - row.n_shared];
}

// Some cells of one KV head, in the order of positions from `first_position` on.
struct HeadCells {
  CellRows cells;
  size_t bytes;        // of the head in a cell
  size_t head_offset;  // bytes
  int head_dim;
  VisibleCells row;
  int32_t first_position;

  const std::byte* operator[](int i) const {
    return cells.data + cell_of(row, first_position + i) * cells.row_bytes + head_offset;
  }
  // Asks for what will be read soon. (Always inline: GCC takes a function that only
  // prefetches for one without effects.)
  __attribute__((always_inline)) void fetch_ahead_of(int i) const {
    if (first_position + i + kPrefetchCells >= row.end) return;
    const std::byte* ahead = (*this)[i + kPrefetchCells];
    for (size_t byte = 0; byte < bytes; byte += kCacheLine)
      __builtin_prefetch(ahead + byte, 0, kPrefetchLocality);
  }
};

// f(Head) for the Head of these cells.
template <typename F>
inline void with_head(ggml_type type, F f) {
  switch (type) {
    case GGML_TYPE_F16: return f(HalfHead{});
    case GGML_TYPE_Q8_0: return f(Q8Head{});
    default: return f(FloatHead{});
  }
}

// kLanes numbers from `d` on, or what there is of them.
template <typename Head>
inline Floats load_some(const std::byte* head, int d, int head_dim) {
  return d + kLanes <= head_dim ? Head::load_at(head, d) : Head::load_tail_at(head, d, head_dim - d);
}

// The cells of `range`: number d of cell range.begin + i goes to out[i * dim + d]. `dim` is
// head_dim in whole vectors.
inline void unpack(const HeadCells& all, Range range, int dim, float* out) {
  with_head(all.cells.type, [cells = all, range, dim, out](auto head_type) {
    float* to = out;
    for (int i = range.begin; i < range.end; ++i) {
      const std::byte* head = cells[i];
      cells.fetch_ahead_of(i);
      for (int d = 0; d < dim; d += kLanes, to += kLanes)
        store(to, load_some<decltype(head_type)>(head, d, cells.head_dim));
    }
  });
}

// The kLanes cells from `first` on: number d of cell first + i goes to out[d * stride + i].
// Those beside `known`, which is not empty, are not touched, and get the numbers of others.
inline void transpose_cells(const HeadCells& all, int first, Range known, int stride, float* out) {
  with_head(all.cells.type, [cells = all, first, known, stride, out](auto head_type) {
    const std::byte* heads[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int cell = larger(known.begin, smaller(first + i, known.end - 1));
      heads[i] = cells[cell];
      cells.fetch_ahead_of(cell);
    }
    for (int d = 0; d < cells.head_dim; d += kLanes) {
      Floats v[kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i)
        v[i] = load_some<decltype(head_type)>(heads[i], d, cells.head_dim);
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < kLanes; ++i) store(out + (d + i) * stride, v[i]);
    }
  });
}

}  // namespace forerun::kernels::FORERUN_ISA
