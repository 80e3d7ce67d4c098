// The inner loops of attention: cells turned into floats, and scores, weights and sums of
// values of one chunk of positions. attention_impl.h says what keeps them row-invariant.
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/exp_impl.h"
#include "model/kernels/half_impl.h"
#include "model/kernels/kernels.h"

namespace forerun::kernels::FORERUN_ISA {

// How many cells ahead to ask for: a fifth less time where the cache is not in L2.
constexpr int kPrefetchCells = 32;
constexpr size_t kLineBytes = 64;
// Sums of values that fit the registers: queries and vectors of each. Enough independent
// additions to keep two units busy.
constexpr int kValueQueries = 4;
constexpr int kValueVectors = kLanes == 8 ? 2 : 4;
static_assert(kAttentionChunk % kLanes == 0);

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

template <int kCount>
struct Count {
  static constexpr int value = kCount;
};
// f(i, Count<n>) for tiles [i, i + n) of [0, count): as many of kMost as there are, then
// one of what is left.
template <int kMost, typename F>
inline void for_tiles(int count, F f) {
  int i = 0;
  for (; i + kMost <= count; i += kMost) f(i, Count<kMost>{});
  if constexpr (kMost > 1) {
    if (i < count) for_tiles<kMost - 1>(count - i, [&](int j, auto n) { f(i + j, n); });
  }
}

// --- Cells as floats

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
  // What to prefetch at cell i, or nullptr. (The caller does: GCC takes a function that
  // only prefetches for one without effects.)
  const std::byte* ahead_of(int i) const {
    return first_position + i + kPrefetchCells < row.end ? (*this)[i + kPrefetchCells] : nullptr;
  }
};

// The cells of `range` as floats: vector v of cell range.begin + i goes to
// out + i * cell_stride + v * vector_stride.
struct FloatLayout {
  int cell_stride, vector_stride;
};
template <typename Head>
inline void unpack_as(const HeadCells cells, Range range, const FloatLayout layout, float* out) {
  const int whole = cells.head_dim / kLanes * kLanes;
  for (int i = range.begin; i < range.end; ++i) {
    const std::byte* head = cells[i];
    if (const std::byte* ahead = cells.ahead_of(i)) {
      for (size_t byte = 0; byte < cells.bytes; byte += kLineBytes)
        __builtin_prefetch(ahead + byte, 0, kPrefetchLocality);
    }
    float* to = out + (i - range.begin) * layout.cell_stride;
    for (int d = 0; d < whole; d += kLanes, to += layout.vector_stride)
      store(to, Head::load_at(head, d));
    if (whole < cells.head_dim) store(to, Head::load_tail_at(head, whole, cells.head_dim - whole));
  }
}
inline void unpack(const HeadCells& cells, Range range, FloatLayout layout, float* out) {
  switch (cells.cells.type) {
    case GGML_TYPE_F16: return unpack_as<HalfHead>(cells, range, layout, out);
    case GGML_TYPE_Q8_0: return unpack_as<Q8Head>(cells, range, layout, out);
    default: return unpack_as<FloatHead>(cells, range, layout, out);
  }
}

// --- Arithmetic of one chunk

// The scores of one query for kLanes keys, vector v of key i at
// keys + (v * kLanes + i) * kLanes. `dim` is a multiple of kLanes.
inline Floats score_keys(const float* query, const float* keys, int dim) {
  Floats sums[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) sums[i] = broadcast(0.0f);
  for (int d = 0; d < dim; d += kLanes) {
    const Floats q = load(query + d);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) sums[i] = fma(q, load(keys + (d + i) * kLanes), sums[i]);
  }
  return transpose_sum(sums);
}

// What softmax leaves of a chunk beside its weights.
struct Softmax {
  float max;
  float sum;
};

// Turns the scores of `range` into weights exp(score - max). Lanes beside it get weight 0.
inline Softmax softmax(float* scores, Range range) {
  const int begin = range.begin / kLanes * kLanes;
  const int end = round_up_to_lanes(range.end);
  for (int i = begin; i < range.begin; ++i) scores[i] = -__builtin_inff();
  for (int i = range.end; i < end; ++i) scores[i] = -__builtin_inff();

  Floats largest = load(scores + begin);
  for (int i = begin + kLanes; i < end; i += kLanes) largest = max(largest, load(scores + i));
  const float m = reduce_max(largest);
  Floats sum = broadcast(0.0f);
  for (int i = begin; i < end; i += kLanes) {
    const Floats weights = exp(sub(load(scores + i), broadcast(m)));
    store(scores + i, weights);
    sum = add(sum, weights);
  }
  return {m, reduce_add(sum)};
}

// Values of cells from `first` on that have been turned into floats, [cell][dim].
struct FloatValues {
  const float* data;
  int first, dim;

  Floats at(int i, int d) const { return load(data + (i - first) * dim + d); }
  static const std::byte* ahead_of(int /*i*/) { return nullptr; }
  static size_t bytes() { return 0; }
};
// Values of half precision in the cache; a head has whole vectors of them.
struct HalfValues {
  HeadCells cells;

  Floats at(int i, int d) const { return HalfHead::load_at(cells[i], d); }
  const std::byte* ahead_of(int i) const { return cells.ahead_of(i); }
  size_t bytes() const { return cells.bytes; }
};

// Weights of some queries, and where their weighted sums of values go.
struct ValueTile {
  const float* weights;  // [query][kAttentionChunk]
  int dim;
  float* sums;  // per query, `sum_stride` apart
  int sum_stride;
};

// sums += weight * value over the cells of `range`, in order, for kQueries queries and
// kVectors vectors from `first` on.
template <int kQueries, int kVectors, typename Values>
inline void add_value_vectors(const ValueTile& tile, const Values& values, Range range, int first) {
  float* const sums = tile.sums + first * kLanes;
  Floats acc[kQueries][kVectors];
#pragma GCC unroll 8
  for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) acc[j][v] = load(sums + j * tile.sum_stride + v * kLanes);
  }
  for (int i = range.begin; i < range.end; ++i) {
    if (const std::byte* ahead = first == 0 ? values.ahead_of(i) : nullptr) {
      for (size_t byte = 0; byte < values.bytes(); byte += kLineBytes)
        __builtin_prefetch(ahead + byte, 0, kPrefetchLocality);
    }
    Floats value[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) value[v] = values.at(i, (first + v) * kLanes);
#pragma GCC unroll 8
    for (int j = 0; j < kQueries; ++j) {
      const Floats weight = broadcast(tile.weights[j * kAttentionChunk + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[j][v] = fma(weight, value[v], acc[j][v]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(sums + j * tile.sum_stride + v * kLanes, acc[j][v]);
  }
}

template <int kQueries, typename Values>
inline void add_values(const ValueTile& tile, const Values& values, Range range) {
  if (is_empty(range)) return;
  for_tiles<kValueVectors>(tile.dim / kLanes, [&](int first, auto n) {
    add_value_vectors<kQueries, n.value>(tile, values, range, first);
  });
}

}  // namespace forerun::kernels::FORERUN_ISA
