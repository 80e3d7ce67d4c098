#include "model/cuda/attention_items.h"

#include <algorithm>
#include <limits>

#include "core/check.h"

namespace forerun::cuda {
namespace {

constexpr int kPromptRows = 64;  // of a text, which with more is a prompt
bool is_prompt(const Text& text) {
  return text.n_rows > kPromptRows;
}

constexpr int64_t kSpreadChunks = 24;      // of a row, which are items of their own up to there
constexpr int64_t kSpreadPartials = 2048;  // of all rows

int first_chunk(const SeenCells& row) {
  return row.first / kChunk;
}
int end_chunk(const SeenCells& row) {
  return (row.end + kChunk - 1) / kChunk;
}

// Rows in one item, as it grows.
class Item {
 public:
  Item(int32_t row, const SeenCells& seen, int64_t end_position)
      : end_position_(end_position),
        last_(seen),
        all_shared_(lies_in_shared(seen)),
        item_{.row = row,
              .n_rows = 1,
              .first_chunk = first_chunk(seen),
              .end_chunk = end_chunk(seen),
              .shared = 0,
              .own = 0,
              .n_shared = 0,
              .end = 0} {}

  // Whether the next row could join.
  bool add(const SeenCells& seen, int most_rows) {
    if (item_.n_rows >= most_rows || seen.shared != last_.shared) return false;
    const bool shared = all_shared_ && lies_in_shared(seen);
    const bool chain =
        is_chain_ && seen.own == last_.own && seen.n_shared == last_.n_shared && seen.end >= last_.end;
    if (!shared && !chain) return false;
    all_shared_ = shared;
    is_chain_ = chain;
    last_ = seen;
    ++item_.n_rows;
    item_.first_chunk = std::min(item_.first_chunk, first_chunk(seen));
    item_.end_chunk = std::max(item_.end_chunk, end_chunk(seen));
    return true;
  }

  // The part of it within chunks [first, end).
  AttentionItem within(int first, int end) const {
    AttentionItem item = item_;
    item.first_chunk = std::max(item.first_chunk, first);
    item.end_chunk = std::min(item.end_chunk, end);
    item.shared = last_.shared;
    item.own = last_.own;
    item.n_shared = last_.n_shared;
    item.end = last_.end;
    return item;
  }

 private:
  bool lies_in_shared(const SeenCells& seen) const { return seen.n_shared >= end_position_; }

  int64_t end_position_;
  SeenCells last_;
  bool all_shared_;
  bool is_chain_ = true;
  AttentionItem item_;
};

}  // namespace

void make_attention_items(std::span<const SeenCells> rows, int heads_per_kv, int item_chunks,
                          int n_tiles, AttentionItems& to) {
  CHECK(item_chunks == 1 || item_chunks == kGroup || item_chunks == kAllChunks);
  CHECK(heads_per_kv >= 1 && heads_per_kv <= kItemQueries);
  to.items.clear();
  to.partial_start.clear();
  to.n_partials = 0;
  const int most_rows = std::max(1, n_tiles * kTileQueries / heads_per_kv);
  const auto n_rows = static_cast<int32_t>(rows.size());
  int first = std::numeric_limits<int>::max(), end = 0;
  for (const SeenCells& row : rows) {
    to.partial_start.push_back(to.n_partials);
    to.n_partials += n_row_items(row, item_chunks);
    if (row.end <= row.first) continue;
    first = std::min(first, first_chunk(row));
    end = std::max(end, end_chunk(row));
  }
  for (int span = first / item_chunks; span * int64_t{item_chunks} < end; ++span) {
    const int span_first = span * item_chunks;
    const int span_end = item_chunks == kAllChunks ? end : span_first + item_chunks;
    const int64_t end_position =
        item_chunks == kAllChunks ? std::numeric_limits<int64_t>::max() : int64_t{span_end} * kChunk;
    const auto sees = [&](const SeenCells& row) {
      return row.end > row.first && first_chunk(row) < span_end && end_chunk(row) > span_first;
    };
    for (int32_t r = 0; r < n_rows;) {
      if (!sees(rows[static_cast<size_t>(r)])) {
        ++r;
        continue;
      }
      Item item(r, rows[static_cast<size_t>(r)], end_position);
      for (++r; r < n_rows && sees(rows[static_cast<size_t>(r)]); ++r) {
        if (!item.add(rows[static_cast<size_t>(r)], most_rows)) break;
      }
      to.items.push_back(item.within(span_first, span_end));
    }
  }
}

int choose_tiles(std::span<const Text> texts, const AttentionShape& shape, ggml_type cache_type) {
  if (!attention_has_wide(shape, cache_type)) {
    constexpr int kLongContext = 2048;
    constexpr int kSmallHead = 64;   // of which reading is not what takes long
    constexpr int kLargeHead = 128;  // with larger ones a multiprocessor has room for one narrow block
    int longest = 0;
    for (const Text& text : texts) longest = std::max(longest, text.end);
    const bool pays = shape.head_dim > kSmallHead && std::ranges::any_of(texts, is_prompt) &&
                      (longest > kLongContext || shape.head_dim > kLargeHead);
    return pays ? kMostTiles : 1;
  }
  // What a chunk takes: for one tile of queries in a narrow block 2, for up to kMostTiles in a wide one.
  const int64_t wide_cost = shape.head_dim <= 64 ? 5 : 7;
  int64_t narrow = 0, wide = 0;
  for (const Text& text : texts) {
    const int64_t n_chunks = (text.end + kChunk - 1) / kChunk;
    const int n_queries = text.n_rows * shape.heads_per_kv();
    narrow += n_chunks * 2 * ((n_queries + kTileQueries - 1) / kTileQueries);
    wide += n_chunks * wide_cost * ((n_queries + kItemQueries - 1) / kItemQueries);
  }
  return wide < narrow ? kMostTiles : 1;
}

int64_t partial_floats(std::span<const SeenCells> rows, const AttentionShape& shape, int item_chunks) {
  int64_t n_partials = 0;
  for (const SeenCells& row : rows) n_partials += n_row_items(row, item_chunks);
  return n_partials * shape.n_heads * (shape.head_dim + 2);
}

int choose_item_chunks(std::span<const SeenCells> rows, const AttentionShape& shape,
                       int64_t most_floats) {
  if (std::ranges::any_of(texts_of(rows), is_prompt)) return kAllChunks;
  int64_t longest = 0, all = 0;
  for (const SeenCells& row : rows) {
    const int64_t n = n_row_items(row, 1);
    longest = std::max(longest, n);
    all += n;
  }
  const bool spreads = longest <= kSpreadChunks && all <= kSpreadPartials;
  if (spreads && partial_floats(rows, shape, 1) <= most_floats) return 1;
  return partial_floats(rows, shape, kGroup) <= most_floats ? kGroup : kAllChunks;
}

}  // namespace forerun::cuda
