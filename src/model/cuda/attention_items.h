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

// Rows of one text, which follow each other and have one list of shared cells.
struct Text {
  int n_rows;
  int end;  // of what they see
};
template <typename Row>
std::vector<Text> texts_of(std::span<const Row> rows) {
  std::vector<Text> texts;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r == 0 || rows[r].shared != rows[r - 1].shared) texts.push_back({.n_rows = 0, .end = 0});
    Text& text = texts.back();
    ++text.n_rows;
    text.end = std::max<int>(text.end, rows[r].end);
  }
  return texts;
}

// How wide blocks are to be: narrow ones, two to a multiprocessor, are not idle where texts have few
// rows, wide ones have far less to do for each query that shares its cells with others. Without the
// kernel for many queries only prompts behind long contexts are better off in wide ones.
int choose_tiles(std::span<const Text> texts, const AttentionShape& shape, ggml_type cache_type);
template <typename Row>
int choose_tiles(std::span<const Row> rows, const AttentionShape& shape, ggml_type cache_type) {
  const std::vector<Text> texts = texts_of(rows);
  return choose_tiles(std::span<const Text>(texts), shape, cache_type);
}

// Floats of the partial results of all rows.
int64_t partial_floats(std::span<const SeenCells> rows, const AttentionShape& shape, int item_chunks);

// Few rows with short contexts are spread over as many blocks as possible; longer ones leave fewer
// partial results to merge; prompts leave one per row. Partial results stay within `most_floats` if they
// can.
int choose_item_chunks(std::span<const SeenCells> rows, const AttentionShape& shape,
                       int64_t most_floats);

}  // namespace forerun::cuda
