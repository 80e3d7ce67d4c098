// Attention of rows over cells of the KV cache, wherever they lie.
//
// Row invariance: positions are cut into chunks of 128, beginning at multiples of 128. A chunk's
// softmax and weighted sum are computed on their own, a cell in the slot of its position. Chunks are
// merged in an order that positions fix: those of a group of four one after the other, then groups one
// after the other. So a row's bits depend neither on other rows nor on the places of cells, nor on
// how the work is spread.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "model/cuda/rows.h"

namespace forerun::cuda {

constexpr int kChunk = 128;  // positions
constexpr int kGroup = 4;    // chunks that are merged first

// What a row sees: positions [first, end). The cell of position p is shared[p] for p < n_shared, else
// own[p - n_shared]. The lists lie in one array of cells on the device.
struct SeenCells {
  int32_t shared;  // where they begin in the array
  int32_t own;
  int32_t n_shared;
  int32_t first;
  int32_t end;
};

// Chunks for rows [row, row + n_rows), all of which see the same cells in them, as far as they see any:
// those of the last of these rows. Either chunks of one group, or all chunks from the first that the
// rows see on.
struct AttentionItem {
  int32_t row;
  int32_t n_rows;
  int32_t first_chunk;
  int32_t end_chunk;
  // What the last row sees (SeenCells), so that nothing else has to be read before its cells.
  int32_t shared;
  int32_t own;
  int32_t n_shared;
  int32_t end;
};
// Queries are rows times heads of a KV head. A block of threads takes one tile of them at a time, or
// several: many reads of a cell for few rows are many blocks at once, many rows of one text read their
// cells once.
constexpr int kTileQueries = 16;
constexpr int kMostTiles = 8;
constexpr int kItemQueries = kMostTiles * kTileQueries;  // most queries of an item

// item_chunks of items that have all chunks of their rows.
constexpr int kAllChunks = 1 << 24;

// Which of a row's items a chunk belongs to.
__host__ __device__ inline int row_item(const SeenCells& row, int chunk, int item_chunks) {
  return chunk / item_chunks - row.first / kChunk / item_chunks;
}
// How many items a row has.
__host__ __device__ inline int n_row_items(const SeenCells& row, int item_chunks) {
  return row.end > row.first ? row_item(row, (row.end - 1) / kChunk, item_chunks) + 1 : 0;
}

struct AttentionShape {
  int head_dim;
  int n_heads;
  int n_kv_heads;
  float scale;     // of scores
  float soft_cap;  // cap * tanh(score / cap) instead of scores; 0: none

  int heads_per_kv() const { return n_heads / n_kv_heads; }
};

// Whether there are kernels for it and for caches of that type.
bool attention_supports(const AttentionShape& shape, ggml_type cache_type);
// Whether one of them is made for many queries that see the same cells.
bool attention_has_wide(const AttentionShape& shape, ggml_type cache_type);

// One layer's keys or values: [cell][kv head][head_dim].
struct CacheRows {
  const std::byte* data;
  int64_t row_bytes;
};

struct AttentionWork {
  AttentionShape shape;
  ggml_type cache_type;  // F16 or Q8_0
  CacheRows keys, values;
  const __half* q;             // [row][head][head_dim], rotated, not scaled
  const int32_t* cells;        // the lists
  const SeenCells* rows;       // [n_rows]
  const AttentionItem* items;  // [*n_items]
  const int32_t* n_items;      // on the device, so that a captured pass serves any context
  int most_items;              // for which there is room
  int n_rows;
  int n_tiles;  // up to kMostTiles, for which the items were cut
  // How many chunks an item has at most: 1, kGroup, or kAllChunks. On the device.
  const int32_t* item_chunks;
  // Scratch: results of a row's items, in order, from partial_start[row] on: [item][head][head_dim + 2].
  const int32_t* partial_start;  // [n_rows]
  float* partials;
};

// At most so many blocks of threads work on items, each on several where there are more.
void attend(const AttentionWork& work, cudaStream_t stream);

// Merges a row's results: x gets [row][head * head_dim] as operand.
void merge(const AttentionWork& work, const Operand& x, cudaStream_t stream);

}  // namespace forerun::cuda
