// How the attention of a pass is cut into items for the GPU.
//
// Speed only: every way of cutting gives the same bits (attention.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cuda/attention.h"

namespace forerun::cuda {

struct AttentionItems {
  std::vector<AttentionItem> items;
  std::vector<int32_t> partial_start;  // per row
  int32_t n_partials = 0;              // results of items, over all rows

  int64_t n_floats(const AttentionShape& shape) const {
    return int64_t{n_partials} * shape.n_heads * (shape.head_dim + 2);
  }
};

// Items of `item_chunks` chunks: 1, kGroup or kAllChunks.
//
// Neighbouring rows share an item, as far as `n_tiles` hold their queries, if they see the same cells in
// it: if all of it lies in shared cells of one sequence (one `shared`), or if their own cells are one
// list, of which each row sees at least as much as the row before it.
void make_attention_items(std::span<const SeenCells> rows, int heads_per_kv, int item_chunks,
                          int n_tiles, AttentionItems& to);

// How wide blocks are to be for texts of so many rows each: the tiles for which they have the least to
// do.
int choose_tiles(std::span<const int> rows_of_texts, int heads_per_kv);

// Floats of the partial results of all rows.
int64_t partial_floats(std::span<const SeenCells> rows, const AttentionShape& shape, int item_chunks);

// Few rows with short contexts are spread over as many blocks as possible; longer ones leave fewer
// partial results to merge; prompts leave one per row. Partial results stay within `most_floats` if they
// can.
int choose_item_chunks(std::span<const SeenCells> rows, const AttentionShape& shape,
                       int64_t most_floats);

}  // namespace forerun::cuda
