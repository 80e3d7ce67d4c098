// The arithmetic of attention to one chunk of positions: scores, weights and sums of values.
// attention_impl.h says what keeps it row-invariant.
//
// Scores and sums of values are made by tiles of kTileQueries queries and kTileVectors
// vectors, whose sums stay in registers. A tile's size changes no sum: each is one chain,
// over the numbers of a head for scores, over positions for values.
#pragma once

#include <stddef.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/attention_cells_impl.h"
#include "model/kernels/exp_impl.h"
#include "model/kernels/kernels.h"

namespace forerun::kernels::FORERUN_ISA {

// Keys that are scored at a time, at most.
constexpr int kKeyBlock = kTileVectors * kLanes;
static_assert(kAttentionChunk % kLanes == 0);
// Cells whose values are added at a time.
constexpr int kValueBlock = 64;

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

// sums += keys[kIndex] * query[kIndex], for all of a tile.
template <int kIndex, int kQueries, int kVectors>
inline void add_number(const float* keys, const Four (&queries)[kQueries],
                       Floats (&sums)[kQueries][kVectors]) {
  Floats key[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) key[v] = load(keys + kIndex * kKeyBlock + v * kLanes);
#pragma GCC unroll 8
  for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[j][v] = fma_by<kIndex>(key[v], queries[j], sums[j][v]);
  }
}

// The scores of kQueries queries, `dim` apart, for kVectors vectors of keys, number d of key i
// at keys[d * kKeyBlock + i]; those of a query are kAttentionChunk apart. `dim` is a multiple
// of 4.
template <int kQueries, int kVectors>
__attribute__((noinline)) void score_tile(const float* queries, const float* keys, int dim,
                                          float* scores) {
  Floats sums[kQueries][kVectors];
#pragma GCC unroll 64
  for (int i = 0; i < kQueries * kVectors; ++i) sums[i / kVectors][i % kVectors] = broadcast(0.0f);
  for (int d = 0; d < dim; d += 4, keys += 4 * kKeyBlock) {
    Four four[kQueries];
#pragma GCC unroll 8
    for (int j = 0; j < kQueries; ++j) four[j] = load_four(queries + j * dim + d);
    add_number<0>(keys, four, sums);
    add_number<1>(keys, four, sums);
    add_number<2>(keys, four, sums);
    add_number<3>(keys, four, sums);
  }
#pragma GCC unroll 8
  for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(scores + j * kAttentionChunk + v * kLanes, sums[j][v]);
  }
}

// cap * tanh(score / cap) for the scores of `range`, with tanh(x) = 1 - 2 / (1 + exp(2 x)). Beside it,
// as far as whole vectors reach, any number becomes another.
inline void cap_scores(float* scores, Range range, float cap) {
  const Floats one = broadcast(1.0f), two = broadcast(2.0f);
  for (int i = range.begin / kLanes * kLanes; i < range.end; i += kLanes) {
    const Floats power = exp(mul(load(scores + i), broadcast(2.0f / cap)));
    store(scores + i, mul(sub(one, div(two, add(one, power))), broadcast(cap)));
  }
}

// What softmax leaves of a chunk beside its weights.
struct Softmax {
  float max;
  float sum;
};

// Turns the scores of `range` into weights exp(score - max). Beside it, as far as whole
// steps reach, weights become 0. Weights are added up in kVectors vectors, each of which
// adds what is at its places, whatever the range.
inline Softmax softmax(float* scores, Range range) {
  constexpr int kVectors = 4;
  constexpr int kStep = kVectors * kLanes;
  static_assert(kAttentionChunk % kStep == 0);
  const int begin = range.begin / kStep * kStep;
  const int end = (range.end + kStep - 1) / kStep * kStep;
  for (int i = begin; i < range.begin; ++i) scores[i] = -__builtin_inff();
  for (int i = range.end; i < end; ++i) scores[i] = -__builtin_inff();

  Floats largest[kVectors], sums[kVectors];
  for (int v = 0; v < kVectors; ++v) largest[v] = load(scores + begin + v * kLanes);
  for (int i = begin + kStep; i < end; i += kStep) {
    for (int v = 0; v < kVectors; ++v) largest[v] = max(largest[v], load(scores + i + v * kLanes));
  }
  const float m = reduce_max(max(max(largest[0], largest[1]), max(largest[2], largest[3])));
  for (Floats& sum : sums) sum = broadcast(0.0f);
  for (int i = begin; i < end; i += kStep) {
    Floats weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weights[v] = sub(load(scores + i + v * kLanes), broadcast(m));
    exp_not_positive(weights);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(scores + i + v * kLanes, weights[v]);
      sums[v] = add(sums[v], weights[v]);
    }
  }
  return {m, reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])))};
}

// Values of cells from `first` on that have been turned into floats, [cell][dim].
struct FloatValues {
  const float* data;
  ptrdiff_t first, dim;

  const float* operator[](ptrdiff_t i) const { return data + (i - first) * dim; }
  static Floats load_at(const float* value, int d) { return load(value + d); }
};
// The same where they lie in the cache in half precision, in whole vectors.
struct HalfValues {
  const std::byte* heads[kValueBlock];
  ptrdiff_t first;

  HalfValues(const HeadCells& cells, Range block) : first(block.begin) {
    for (int i = block.begin; i < block.end; ++i) {
      heads[i - block.begin] = cells[i];
      cells.fetch_ahead_of(i);
    }
  }
  const std::byte* operator[](ptrdiff_t i) const { return heads[i - first]; }
  static Floats load_at(const std::byte* value, int d) { return HalfHead::load_at(value, d); }
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
__attribute__((noinline)) void add_value_vectors(const ValueTile& tile, const Values& values,
                                                 Range range, int first) {
  float* const at = tile.sums + first * kLanes;
  Floats sums[kQueries][kVectors];
#pragma GCC unroll 8
  for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[j][v] = load(at + j * tile.sum_stride + v * kLanes);
  }
  // Value i + kIndex of up to four that share a load of weights.
  const auto add_value = [&](auto index, ptrdiff_t i, const Four(&weights)[kQueries]) {
    const auto* from = values[i + index.value];
    Floats value[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) value[v] = Values::load_at(from, (first + v) * kLanes);
#pragma GCC unroll 8
    for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sums[j][v] = fma_by<index.value>(value[v], weights[j], sums[j][v]);
    }
  };
  const auto load_weights = [&](ptrdiff_t i, Four(&weights)[kQueries]) {
#pragma GCC unroll 8
    for (int j = 0; j < kQueries; ++j) weights[j] = load_four(tile.weights + j * kAttentionChunk + i);
  };
  Four weights[kQueries];
  ptrdiff_t i = range.begin;
  for (; i + 4 <= range.end; i += 4) {
    load_weights(i, weights);
    add_value(Count<0>{}, i, weights);
    add_value(Count<1>{}, i, weights);
    add_value(Count<2>{}, i, weights);
    add_value(Count<3>{}, i, weights);
  }
  // Four numbers can be loaded behind the last weight, too: it is followed by other arrays.
  for (; i < range.end; ++i) {
    load_weights(i, weights);
    add_value(Count<0>{}, i, weights);
  }
#pragma GCC unroll 8
  for (int j = 0; j < kQueries; ++j) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(at + j * tile.sum_stride + v * kLanes, sums[j][v]);
  }
}

template <int kQueries, typename Values>
inline void add_values(const ValueTile& tile, const Values& values, Range range) {
  if (is_empty(range)) return;
  for_tiles<kTileVectors>(tile.dim / kLanes, [&](int first, auto n) {
    add_value_vectors<kQueries, n.value>(tile, values, range, first);
  });
}

}  // namespace forerun::kernels::FORERUN_ISA
