// How threads share the attention of few rows: by chunks of positions.
//
// A unit of work is one chunk, of one KV head, for a part of the rows. Units are in the order
// of parts, heads, chunks, and every worker takes neighbours. Chunks are merged in order, which
// is not associative: a worker may merge the first chunks of a head at once, others make a
// partial result each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "model/cpu/op.h"
#include "model/kernels/kernels.h"

namespace forerun {

struct Chunks {
  int first;
  int end;
};

// The chunks of positions that any of these rows sees.
inline Chunks seen_chunks(std::span<const VisibleCells> rows) {
  Chunks chunks{.first = INT32_MAX, .end = 0};
  for (const VisibleCells& row : rows) {
    chunks.first = std::min(chunks.first, row.first / kAttentionChunk);
    chunks.end = std::max(chunks.end, (row.end + kAttentionChunk - 1) / kAttentionChunk);
  }
  return chunks;
}

class ChunkShares {
 public:
  ChunkShares(std::span<const VisibleCells> rows, int n_kv_heads, int n_workers)
      : chunks_(seen_chunks(rows)),
        n_rows_(static_cast<int64_t>(rows.size())),
        n_kv_heads_(n_kv_heads),
        n_workers_(n_workers) {
    // Rows share what is read of the cells, so they are parted only to keep all busy.
    const int64_t n_cell_units = n_chunks() * n_kv_heads_;
    n_parts_ = std::clamp<int64_t>((2 * n_workers + n_cell_units - 1) / n_cell_units, 1, n_rows_);
  }

  // Chunks of one KV head that some rows attend to in one call, and which of their partial
  // results that makes.
  struct Run {
    Range rows;
    int kv_head;
    Chunks chunks;
    int64_t partial;
  };
  // f(run) for all of a worker's share.
  template <typename F>
  void for_runs(int worker, F f) const {
    auto [unit, end] = share(worker);
    while (unit < end) {
      const int64_t head = unit / n_chunks();
      const int64_t chunk = unit % n_chunks();
      const int64_t n_merged = this->n_merged(head);
      const int64_t n = chunk == 0 ? n_merged : 1;
      const int first = chunks_.first + static_cast<int>(chunk);
      f(Run{.rows = part(head / n_kv_heads_),
            .kv_head = static_cast<int>(head % n_kv_heads_),
            .chunks = {.first = first, .end = first + static_cast<int>(n)},
            .partial = chunk == 0 ? 0 : 1 + chunk - n_merged});
      unit += n;
    }
  }

  // How many partial results a row has of a KV head.
  int n_partials(int64_t row, int kv_head) const {
    int64_t p = 0;
    while (part(p).end <= row) ++p;
    return static_cast<int>(n_chunks() - n_merged(p * n_kv_heads_ + kv_head) + 1);
  }

 private:
  int64_t n_chunks() const { return chunks_.end - chunks_.first; }
  Range part(int64_t p) const {
    return {.first = n_rows_ * p / n_parts_, .end = n_rows_ * (p + 1) / n_parts_};
  }
  Range share(int worker) const {
    return share_of({.index = worker, .count = n_workers_}, n_parts_ * n_kv_heads_ * n_chunks());
  }
  // How many chunks the worker that has the first one of a head has of it.
  int64_t n_merged(int64_t head) const {
    const int64_t first = head * n_chunks();
    int worker = 0;
    while (share(worker).end <= first) ++worker;
    return std::min(n_chunks(), share(worker).end - first);
  }

  Chunks chunks_;
  int64_t n_rows_;
  int n_kv_heads_;
  int n_workers_;
  int64_t n_parts_;
};

}  // namespace forerun
