// Attention of a few rows to the cells of a KV cache.
//
// Positions are visited in chunks of kAttentionChunk that begin at its multiples. Within
// a chunk the scores of all its cells are computed first, then their softmax, then the
// weighted sum of the values, cell after cell in the order of positions; the chunk is
// then merged into what came before it. So the bits of a row depend on its query and the
// cells it sees alone: a position's lane and place in every sum follow from the position,
// and sums skip what a row does not see, or add an exact 0.
//
// Merging is in order but not associative: partial results of single chunks, or of the
// first few chunks and then of single ones, merge to the same bits as one call for all.
//
// Rows share work, not arithmetic: keys and values that several rows see are turned into
// floats once, kKeyBlock or kValueBlock cells at a time, and used for all query heads of all
// those rows. The cells a row has of its own are done row by row, unless they are the
// same list (a prompt, whose rows see a little more of it each).
#pragma once

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "model/kernels/attention_chunk_impl.h"
#include "model/kernels/exp_impl.h"
#include "model/kernels/kernels.h"

namespace forerun::kernels::FORERUN_ISA {

// Query heads that are computed together; more of them if a KV head has more.
constexpr int kGroupQueries = 64;
static_assert(kMaxHeadDim % kLanes == 0);

// A partial result within these files: values, with zeros up to `dim` (whole vectors),
// then a vector that begins with the largest score and the sum.
inline Softmax softmax_of(const float* partial, int dim) {
  return {partial[dim], partial[dim + 1]};
}
inline void set_softmax(float* partial, int dim, Softmax s) {
  partial[dim] = s.max;
  partial[dim + 1] = s.sum;
}
inline void clear_partial(float* partial, int dim) {
  memset(partial, 0, dim * sizeof(float));
  set_softmax(partial, dim, {-__builtin_inff(), 0.0f});
}

// Merges `from` into `into`. Empty ones, sum 0, change nothing.
inline void merge_partial(float* into, const float* from, int dim) {
  const Softmax s = softmax_of(into, dim);
  const Softmax t = softmax_of(from, dim);
  if (t.sum == 0.0f) return;
  if (s.sum == 0.0f) {
    memcpy(into, from, dim * sizeof(float));
    return set_softmax(into, dim, t);
  }
  const float m = s.max > t.max ? s.max : t.max;
  Floats factors[] = {broadcast(s.max - m), broadcast(t.max - m)};
  exp_not_positive(factors);
  const auto [a, b] = factors;
  for (int d = 0; d < dim; d += kLanes) store(into + d, fma(load(into + d), a, mul(load(from + d), b)));
  store(into + dim, fma(broadcast(s.sum), a, mul(broadcast(t.sum), b)));
  set_softmax(into, dim, {m, into[dim]});
}

// Some rows that go through the chunks together. Arrays are per query: row after row,
// each with the query heads of the KV head.
class AttentionGroup {
 public:
  AttentionGroup(const AttentionArgs& args, int first_row, int n_rows);

  static int max_rows(const AttentionShape& shape) {
    return larger(1, kGroupQueries / (shape.n_heads / shape.n_kv_heads));
  }
  static size_t scratch_floats(const AttentionShape& shape, int n_rows);

  void attend();

 private:
  // Rows [begin, end) of the group.
  struct Rows {
    int begin, end;
  };

  const VisibleCells& row(int r) const { return args_.rows[first_row_ + r]; }
  HeadCells head_cells(const CellRows& cells, int r) const {
    const size_t bytes = head_bytes(cells.type, args_.shape.head_dim);
    return {cells, bytes, args_.kv_head * bytes, args_.shape.head_dim, row(r), position_};
  }
  // What some row of `rows` sees of `range`.
  Range seen(Rows rows, Range range) const;

  // f(rows) for the longest runs of neighbours among `rows` that are the same.
  template <typename Same, typename F>
  void for_runs(Rows rows, Same same, F f) const;

  void attend_chunk();
  void attend_run(Rows rows);
  void score(Rows rows, Range range);
  void add_values_of(Rows rows, Range range);
  template <typename Values>
  void add_block(Rows rows, Range block, const Values& values);

  const AttentionArgs& args_;
  int first_row_, n_rows_;
  int n_heads_;                   // query heads of the KV head
  int dim_, partial_;             // floats per query, and of a partial result
  int32_t position_ = 0;          // the chunk's first
  Range visible_[kGroupQueries];  // of the chunk, per row
  float* keys_;                   // [dim][kKeyBlock]
  float* cell_values_;            // [kValueBlock][dim]
  float* q_;                      // [query][dim]
  float* weights_;                // [query][kAttentionChunk]; scores at first
  float* chunk_;                  // [query][partial]
  float* result_;                 // [query][partial]
};

inline AttentionGroup::AttentionGroup(const AttentionArgs& args, int first_row, int n_rows)
    : args_(args),
      first_row_(first_row),
      n_rows_(n_rows),
      n_heads_(args.shape.n_heads / args.shape.n_kv_heads),
      dim_(round_up_to_lanes(args.shape.head_dim)),
      partial_(dim_ + kLanes) {
  constexpr size_t kAlignment = kLanes * sizeof(float);
  const size_t misaligned = reinterpret_cast<uintptr_t>(args.scratch) % kAlignment;
  float* next = args.scratch + (misaligned == 0 ? 0 : (kAlignment - misaligned) / sizeof(float));
  const auto take = [&next](int n) {
    float* taken = next;
    next += n;
    return taken;
  };
  const int n_queries = n_rows_ * n_heads_;
  keys_ = take(kKeyBlock * dim_);
  cell_values_ = take(kValueBlock * dim_);
  q_ = take(n_queries * dim_);
  weights_ = take(n_queries * kAttentionChunk);
  chunk_ = take(n_queries * partial_);
  result_ = take(n_queries * partial_);
}

inline size_t AttentionGroup::scratch_floats(const AttentionShape& shape, int n_rows) {
  const size_t dim = round_up_to_lanes(shape.head_dim);
  const size_t n_queries = smaller(n_rows, max_rows(shape)) * (shape.n_heads / shape.n_kv_heads);
  return kLanes + (kKeyBlock + kValueBlock) * dim + n_queries * (3 * dim + 2 * kLanes + kAttentionChunk);
}

inline Range AttentionGroup::seen(Rows rows, Range range) const {
  Range all = {range.end, range.begin};
  for (int r = rows.begin; r < rows.end; ++r) {
    const Range part = intersect(visible_[r], range);
    if (is_empty(part)) continue;
    all = {smaller(all.begin, part.begin), larger(all.end, part.end)};
  }
  return all.begin < all.end ? all : Range{range.begin, range.begin};
}

template <typename Same, typename F>
inline void AttentionGroup::for_runs(Rows rows, Same same, F f) const {
  while (rows.begin < rows.end) {
    Rows run = {rows.begin, rows.begin + 1};
    while (run.end < rows.end && same(row(run.begin), row(run.end))) ++run.end;
    f(run);
    rows.begin = run.end;
  }
}

inline void AttentionGroup::attend() {
  const int head_dim = args_.shape.head_dim;
  const int n_queries = n_rows_ * n_heads_;
  for (int i = 0; i < n_queries; ++i) {
    const float* from = args_.q + (first_row_ + i / n_heads_) * args_.q_stride +
                        (args_.kv_head * n_heads_ + i % n_heads_) * int64_t{head_dim};
    float* to = q_ + i * dim_;
    for (int d = 0; d < dim_; ++d) to[d] = d < head_dim ? from[d] * args_.shape.scale : 0.0f;
    clear_partial(result_ + i * partial_, dim_);
  }
  for (int chunk = args_.first_chunk; chunk < args_.end_chunk; ++chunk) {
    position_ = chunk * kAttentionChunk;
    attend_chunk();
  }
  for (int i = 0; i < n_queries; ++i) {
    const float* from = result_ + i * partial_;
    float* to = args_.out + (first_row_ + i / n_heads_) * args_.out_row_stride +
                (args_.kv_head * n_heads_ + i % n_heads_) * int64_t{head_dim + kPartialExtra};
    memcpy(to, from, head_dim * sizeof(float));
    set_softmax(to, head_dim, softmax_of(from, dim_));
  }
}

inline void AttentionGroup::attend_chunk() {
  const Range whole = {0, kAttentionChunk};
  for (int r = 0; r < n_rows_; ++r) {
    visible_[r] = intersect({row(r).first - position_, row(r).end - position_}, whole);
  }
  const auto same = [](const VisibleCells& a, const VisibleCells& b) { return a.shared == b.shared; };
  for_runs({0, n_rows_}, same, [&](Rows run) { attend_run(run); });
}

// Rows with the same shared cells.
inline void AttentionGroup::attend_run(Rows rows) {
  if (is_empty(seen(rows, {0, kAttentionChunk}))) return;
  int n_shared = kAttentionChunk;
  for (int r = rows.begin; r < rows.end; ++r) n_shared = smaller(n_shared, row(r).n_shared - position_);
  n_shared = larger(0, n_shared) / kLanes * kLanes;

  const auto same = [](const VisibleCells& a, const VisibleCells& b) {
    return a.own == b.own && a.n_shared == b.n_shared;
  };
  const auto for_parts = [&](auto f) {
    f(rows, Range{0, n_shared});
    for_runs(rows, same, [&](Rows run) { f(run, Range{n_shared, kAttentionChunk}); });
  };
  for_parts([&](Rows run, Range range) { score(run, range); });
  for (int i = rows.begin * n_heads_; i < rows.end * n_heads_; ++i) {
    const Range range = visible_[i / n_heads_];
    float* chunk = chunk_ + i * partial_;
    clear_partial(chunk, dim_);
    if (is_empty(range)) continue;
    float* weights = weights_ + i * kAttentionChunk;
    if (args_.shape.soft_cap > 0.0f) cap_scores(weights, range, args_.shape.soft_cap);
    set_softmax(chunk, dim_, softmax(weights, range));
  }
  for_parts([&](Rows run, Range range) { add_values_of(run, range); });
  for (int i = rows.begin * n_heads_; i < rows.end * n_heads_; ++i) {
    merge_partial(result_ + i * partial_, chunk_ + i * partial_, dim_);
  }
}

// The scores of `range`, which begins with a whole vector, for rows that have the same
// cells there. Positions a row does not see get any number.
inline void AttentionGroup::score(Rows rows, Range range) {
  const Range all = seen(rows, range);
  const HeadCells cells = head_cells(args_.keys, rows.begin);
  const int first_query = rows.begin * n_heads_;
  const int n_queries = (rows.end - rows.begin) * n_heads_;
  const int begin = all.begin / kLanes * kLanes;
  const int n_vectors = is_empty(all) ? 0 : (all.end - begin + kLanes - 1) / kLanes;
  for_tiles<kTileVectors>(n_vectors, [&](int first_vector, auto vectors) {
    const int block = begin + first_vector * kLanes;
    for (int i = 0; i < vectors.value * kLanes; i += kLanes)
      transpose_cells(cells, block + i, all, kKeyBlock, keys_ + i);
    for_tiles<kTileQueries>(n_queries, [&](int j, auto queries) {
      const int query = first_query + j;
      score_tile<queries.value, vectors.value>(q_ + query * dim_, keys_, dim_,
                                               weights_ + query * kAttentionChunk + block);
    });
  });
}

// Adds the weighted values of `range` for rows that have the same cells there. Values that
// one tile of queries needs are turned into floats as they are added, others beforehand.
inline void AttentionGroup::add_values_of(Rows rows, Range range) {
  const Range all = seen(rows, range);
  const HeadCells cells = head_cells(args_.values, rows.begin);
  const bool is_one_tile = (rows.end - rows.begin) * n_heads_ <= kTileQueries;
  const bool has_halves = args_.values.type == GGML_TYPE_F16 && dim_ == args_.shape.head_dim;
  for (int i = all.begin; i < all.end; i += kValueBlock) {
    const Range block = {i, smaller(i + kValueBlock, all.end)};
    if (is_one_tile && has_halves) {
      add_block(rows, block, HalfValues(cells, block));
    } else {
      unpack(cells, block, dim_, cell_values_);
      add_block(rows, block, FloatValues{cell_values_, i, dim_});
    }
  }
}

template <typename Values>
inline void AttentionGroup::add_block(Rows rows, Range block, const Values& values) {
  const int first_query = rows.begin * n_heads_;
  const int n_queries = (rows.end - rows.begin) * n_heads_;
  for_tiles<kTileQueries>(n_queries, [&](int j, auto n) {
    // What all queries of the tile see of the block; what only some see comes before
    // or after it.
    Range common = block;
    for (int k = j; k < j + n.value; ++k) {
      common = intersect(common, visible_[(first_query + k) / n_heads_]);
    }
    const auto add_tile = [&](int k, auto count, Range part) {
      const int query = first_query + k;
      const ValueTile tile = {.weights = weights_ + query * kAttentionChunk,
                              .dim = dim_,
                              .sums = chunk_ + query * partial_,
                              .sum_stride = partial_};
      add_values<count.value>(tile, values, part);
    };
    const auto add_each = [&](Range part) {
      for (int k = j; k < j + n.value; ++k) {
        add_tile(k, Count<1>{}, intersect(part, visible_[(first_query + k) / n_heads_]));
      }
    };
    add_each({block.begin, common.begin});
    add_tile(j, n, common);
    add_each({common.end, block.end});
  });
}

inline void attend(const AttentionArgs& args) {
  const int step = AttentionGroup::max_rows(args.shape);
  for (int r = 0; r < args.n_rows; r += step) {
    AttentionGroup(args, r, smaller(step, args.n_rows - r)).attend();
  }
}

inline size_t attention_scratch_floats(const AttentionShape& shape, int n_rows) {
  return AttentionGroup::scratch_floats(shape, n_rows);
}

// All empty: zeros.
inline void merge(const MergeArgs& args, float* y) {
  const int head_dim = args.head_dim;
  const int dim = round_up_to_lanes(head_dim);
  float result[kMaxHeadDim + kLanes];
  float partial[kMaxHeadDim + kLanes] = {};
  clear_partial(result, dim);
  for (int i = 0; i < args.n; ++i) {
    const float* from = args.partials + i * args.stride;
    memcpy(partial, from, head_dim * sizeof(float));
    set_softmax(partial, dim, softmax_of(from, head_dim));
    merge_partial(result, partial, dim);
  }
  if (args.sink != nullptr) {  // the result of one cell, with weight exp(0)
    clear_partial(partial, dim);
    set_softmax(partial, dim, {*args.sink, 1.0f});
    merge_partial(result, partial, dim);
  }
  const float sum = softmax_of(result, dim).sum;
  const Floats divisor = broadcast(sum == 0.0f ? 1.0f : sum);
  for (int d = 0; d < dim; d += kLanes) store(result + d, div(load(result + d), divisor));
  memcpy(y, result, head_dim * sizeof(float));
}

}  // namespace forerun::kernels::FORERUN_ISA
