// How the attention of a pass is cut into items for the GPU.
//
// Speed only: every way of cutting gives the same bits (attention.h).
#pragma once

#include <algorithm>
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

// Whether some text has so many rows that it is a prompt. Its rows follow each other, and have one list
// of shared cells.
constexpr int kPromptRows = 64;
template <typename Row>
bool has_prompt(std::span<const Row> rows) {
  int n = 0;
  for (size_t r = 0; r < rows.size() && n <= kPromptRows; ++r)
    n = r > 0 && rows[r].shared == rows[r - 1].shared ? n + 1 : 1;
  return n > kPromptRows;
}

// How wide blocks are to be. Narrow ones, two to a multiprocessor, are as fast as wide ones, and are not
// idle where texts have few rows. Prompts behind long contexts read these less often in wide ones.
template <typename Row>
int choose_tiles(std::span<const Row> rows, int head_dim) {
  constexpr int kLongContext = 2048;
  constexpr int kSmallHead = 64;   // of which reading is not what takes long
  constexpr int kLargeHead = 128;  // with larger ones a multiprocessor has room for one narrow block
  if (head_dim <= kSmallHead || !has_prompt(rows)) return 1;
  const int longest = std::ranges::max(rows, {}, &Row::end).end;
  return longest > kLongContext || head_dim > kLargeHead ? kMostTiles : 1;
}

// Floats of the partial results of all rows.
int64_t partial_floats(std::span<const SeenCells> rows, const AttentionShape& shape, int item_chunks);

// Few rows with short contexts are spread over as many blocks as possible; longer ones leave fewer
// partial results to merge; prompts leave one per row. Partial results stay within `most_floats` if they
// can.
int choose_item_chunks(std::span<const SeenCells> rows, const AttentionShape& shape,
                       int64_t most_floats);

}  // namespace forerun::cuda
