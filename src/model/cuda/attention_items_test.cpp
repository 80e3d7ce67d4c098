#include "model/cuda/attention_items.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "model/cuda/attention_fixtures.h"

namespace forerun::cuda {
namespace {

void expect_covered(const TestRows& rows, int heads_per_kv, int item_chunks, int n_tiles) {
  AttentionItems made;
  make_attention_items(rows.seen, heads_per_kv, item_chunks, n_tiles, made);
  std::vector<std::vector<int>> covered(rows.seen.size());  // chunks that a row sees, as they come
  std::map<std::pair<size_t, int>, int> results;            // of a row's items
  for (const AttentionItem& item : made.items) {
    EXPECT_LE(item.n_rows * heads_per_kv, std::max(heads_per_kv, n_tiles * kTileQueries));
    EXPECT_LT(item.first_chunk, item.end_chunk);
    if (item_chunks != kAllChunks) {
      EXPECT_EQ(item.first_chunk / item_chunks, (item.end_chunk - 1) / item_chunks);
    }
    const SeenCells& last = rows.seen[static_cast<size_t>(item.row + item.n_rows - 1)];
    EXPECT_EQ(item.shared, last.shared);
    EXPECT_EQ(item.own, last.own);
    EXPECT_EQ(item.n_shared, last.n_shared);
    EXPECT_EQ(item.end, last.end);
    for (int r = item.row; r < item.row + item.n_rows; ++r) {
      const SeenCells& row = rows.seen[static_cast<size_t>(r)];
      bool sees = false;
      for (int chunk = item.first_chunk; chunk < item.end_chunk; ++chunk) {
        const int begin = std::max(chunk * kChunk, row.first),
                  end = std::min((chunk + 1) * kChunk, row.end);
        if (begin < end) covered[static_cast<size_t>(r)].push_back(chunk);
        sees |= begin < end;
        for (int p = begin; p < end; ++p) {
          ASSERT_LT(p, last.end);
          ASSERT_EQ(cell_of(rows, row, p), cell_of(rows, last, p));
        }
      }
      if (sees) ++results[{static_cast<size_t>(r), row_item(row, item.first_chunk, item_chunks)}];
    }
  }
  int32_t n_partials = 0;
  for (size_t r = 0; r < rows.seen.size(); ++r) {
    const SeenCells& row = rows.seen[r];
    std::vector<int> expected;
    for (int chunk = row.first / kChunk; chunk * kChunk < row.end; ++chunk) expected.push_back(chunk);
    EXPECT_EQ(covered[r], expected) << "row " << r;
    EXPECT_EQ(made.partial_start[r], n_partials);
    for (int i = 0; i < n_row_items(row, item_chunks); ++i) {
      EXPECT_EQ((results[{r, i}]), 1) << "row " << r << " item " << i;
    }
    n_partials += n_row_items(row, item_chunks);
  }
  EXPECT_EQ(made.n_partials, n_partials);
  EXPECT_EQ(results.size(), static_cast<size_t>(n_partials));
}

TEST(AttentionItemsTest, CoverEveryChunkOfEveryRowOnce) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const int window = i % 3 == 0 ? 1 + static_cast<int>(random() % 700) : 0;
    const TestRows rows = random_rows(random, window);
    for (const int heads_per_kv : {1, 3, 4, 7, 8, 64}) {
      for (const int item_chunks : {1, kGroup, kAllChunks}) {
        for (const int n_tiles : {1, 2, kMostTiles}) {
          expect_covered(rows, heads_per_kv, item_chunks, n_tiles);
        }
      }
    }
  }
}

TEST(AttentionItemsTest, RowsOfAChainShareTheirItems) {
  constexpr int kFourTiles = 4;
  std::vector<SeenCells> rows;
  for (int i = 0; i < 16; ++i) {
    rows.push_back({.shared = 0, .own = 1000, .n_shared = 1000, .first = 0, .end = 1001 + i});
  }
  AttentionItems made;
  make_attention_items(rows, 4, 1, kFourTiles, made);
  EXPECT_EQ(made.items.size(), 8u);
  make_attention_items(rows, 4, kGroup, kFourTiles, made);
  EXPECT_EQ(made.items.size(), 2u);
  make_attention_items(rows, 4, kAllChunks, kFourTiles, made);
  EXPECT_EQ(made.items.size(), 1u);
  make_attention_items(rows, 8, 1, kFourTiles, made);
  EXPECT_EQ(made.items.size(), 16u);
}

// kMostTiles for so many texts, each with so many rows behind a context.
int tiles(int n_texts, int n_rows, int context, int head_dim, ggml_type cache_type) {
  std::vector<SeenCells> rows;
  for (int text = 0; text < n_texts; ++text) {
    for (int i = 0; i < n_rows; ++i)
      rows.push_back(
          {.shared = text, .own = 0, .n_shared = context, .first = 0, .end = context + i + 1});
  }
  const AttentionShape shape{
      .head_dim = head_dim, .n_heads = 32, .n_kv_heads = 8, .scale = 1, .soft_cap = 0};
  return choose_tiles(std::span<const SeenCells>(rows), shape, cache_type);
}

TEST(AttentionItemsTest, BlocksAreWideWhereManyQueriesShareCells) {
  EXPECT_EQ(tiles(1, 512, 4000, 128, GGML_TYPE_F16), kMostTiles);
  EXPECT_EQ(tiles(1, 512, 0, 64, GGML_TYPE_F16), kMostTiles);
  EXPECT_EQ(tiles(1, 32, 1000, 128, GGML_TYPE_F16), kMostTiles) << "a draft of many rows";
  EXPECT_EQ(tiles(1, 8, 1000, 128, GGML_TYPE_F16), 1);
  EXPECT_EQ(tiles(40, 3, 4000, 128, GGML_TYPE_F16), 1) << "many drafts of few rows";
  EXPECT_EQ(tiles(0, 0, 0, 64, GGML_TYPE_F16), 1);
}

TEST(AttentionItemsTest, OtherwiseBlocksAreWideForPromptsBehindLongContexts) {
  EXPECT_EQ(tiles(1, 512, 4000, 128, GGML_TYPE_Q8_0), kMostTiles);
  EXPECT_EQ(tiles(1, 512, 0, 256, GGML_TYPE_F16), kMostTiles)
      << "large heads leave room for one block anyway";
  EXPECT_EQ(tiles(1, 512, 0, 128, GGML_TYPE_Q8_0), 1);
  EXPECT_EQ(tiles(1, 512, 4000, 64, GGML_TYPE_Q8_0), 1);
  EXPECT_EQ(tiles(1, 64, 4000, 128, GGML_TYPE_Q8_0), 1);
}

TEST(AttentionItemsTest, BranchesShareWholeChunksOfTheirContext) {
  // Two branches behind 200 positions: one chunk is shared, the next has cells of their own.
  const std::vector<SeenCells> rows = {
      {.shared = 0, .own = 200, .n_shared = 200, .first = 0, .end = 201},
      {.shared = 0, .own = 201, .n_shared = 200, .first = 0, .end = 201}};
  AttentionItems made;
  make_attention_items(rows, 4, 1, kMostTiles, made);
  EXPECT_EQ(made.items.size(), 3u);
  EXPECT_EQ(made.items[0].n_rows, 2);
}

TEST(AttentionItemsTest, ChoiceKeepsWithinRoom) {
  const AttentionShape shape{.head_dim = 128, .n_heads = 32, .n_kv_heads = 8, .scale = 1, .soft_cap = 0};
  const auto chain = [](int n, int context) {
    std::vector<SeenCells> rows;
    for (int i = 0; i < n; ++i) {
      rows.push_back(
          {.shared = 0, .own = context, .n_shared = context, .first = 0, .end = context + i + 1});
    }
    return rows;
  };
  constexpr int64_t kRoom = int64_t{64} << 20;
  EXPECT_EQ(choose_item_chunks(chain(1, 1000), shape, kRoom), 1);
  EXPECT_EQ(choose_item_chunks(chain(1, 32000), shape, kRoom), kGroup);
  EXPECT_EQ(choose_item_chunks(chain(65, 10), shape, kRoom), kAllChunks);
  EXPECT_EQ(choose_item_chunks(chain(64, 1 << 20), shape, kRoom), kAllChunks);
  std::vector<SeenCells> many_drafts;
  for (int text = 0; text < 40; ++text) {
    for (SeenCells row : chain(3, 1000)) {
      row.shared = row.own = text * 2000;
      many_drafts.push_back(row);
    }
  }
  EXPECT_EQ(choose_item_chunks(many_drafts, shape, kRoom), 1);
  EXPECT_EQ(choose_item_chunks({}, shape, kRoom), 1);
  for (const int n : {1, 8, 64}) {
    for (const int context : {1, 1000, 8000, 32000}) {
      const auto rows = chain(n, context);
      const int item_chunks = choose_item_chunks(rows, shape, kRoom);
      if (item_chunks == kAllChunks) continue;
      EXPECT_LE(partial_floats(rows, shape, item_chunks), kRoom);
    }
  }
}

}  // namespace
}  // namespace forerun::cuda
