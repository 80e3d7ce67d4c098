#include "model/cuda/seen_layout.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "model/cuda/attention_items.h"

namespace forerun::cuda {
namespace {

constexpr size_t kPlaceAlignment = 16;
// Results that items leave for single rows: more of them than this are made fewer by longer items.
constexpr int kMostPartials = 8192;

template <typename T>
T* at(std::byte* base, size_t place) {
  return reinterpret_cast<T*>(base + place);
}

}  // namespace

AttentionShape attention_shape(const ModelConfig& config) {
  return {.head_dim = config.heads.dim,
          .n_heads = config.heads.n,
          .n_kv_heads = config.heads.n_kv,
          .scale = config.attention_scale,
          .soft_cap = config.attention_softcap};
}

int attention_tiles(const ModelConfig& config, KvType kv_type, const VisibleRows& rows) {
  return choose_tiles(rows.all(), attention_shape(config), ggml_type_of(kv_type));
}

int attention_tiles(const ModelConfig& config, KvType kv_type, int n_rows) {
  const Text texts[] = {{.n_rows = n_rows, .end = 1}};
  return choose_tiles(texts, attention_shape(config), ggml_type_of(kv_type));
}

SeenLayout::SeenLayout(const ModelConfig& config, int n_rows, int n_listed)
    : shape_(attention_shape(config)),
      has_windows_(config.window > 0),
      n_rows_(n_rows),
      n_listed_(n_listed) {
  const int n_chunks = (n_listed + kChunk - 1) / kChunk + 1;
  most_partials_ = static_cast<int>(
      std::max<int64_t>(n_rows, std::min<int64_t>(kMostPartials, int64_t{n_rows} * n_chunks)));
  most_items_ = most_partials_;
  const auto place = [&](size_t n_bytes) {
    const size_t at = n_bytes_;
    n_bytes_ += (n_bytes + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
    return at;
  };
  const auto rows = static_cast<size_t>(n_rows);
  const auto place_kind = [&] {
    return Places{.counts = place(2 * sizeof(int32_t)),
                  .rows = place(rows * sizeof(SeenCells)),
                  .partial_start = place(rows * sizeof(int32_t)),
                  .items = place(static_cast<size_t>(most_items_) * sizeof(AttentionItem))};
  };
  all_ = place_kind();
  if (has_windows_) windowed_ = place_kind();
  cells_ = place(static_cast<size_t>(n_listed) * sizeof(int32_t));
}

int64_t SeenLayout::partial_floats() const {
  return int64_t{most_partials_} * shape_.n_heads * (shape_.head_dim + 2);
}

void SeenLayout::fill(const VisibleRows& rows, int n_tiles, std::byte* to) const {
  // The lists, each once.
  auto* cells = at<int32_t>(to, cells_);
  int32_t n_cells = 0;
  const auto list = [&](const int32_t* from, int32_t n) {
    CHECK(n_cells + n <= n_listed_);
    std::memcpy(cells + n_cells, from, static_cast<size_t>(n) * sizeof(int32_t));
    n_cells += n;
    return n_cells - n;
  };
  const std::span<const VisibleCells> all = rows.all();
  std::vector<SeenCells> seen(all.size());
  for (size_t r = 0; r < all.size();) {
    size_t end = r + 1;
    int32_t n_shared = all[r].n_shared;
    for (; end < all.size() && all[end].shared == all[r].shared; ++end)
      n_shared = std::max(n_shared, all[end].n_shared);
    const int32_t shared = list(all[r].shared, n_shared);
    for (; r < end; ++r) seen[r].shared = shared;
  }
  for (size_t r = 0; r < all.size();) {
    size_t end = r + 1;  // rows of one chain have one list, of which the last sees all
    for (; end < all.size() && all[end].own == all[r].own; ++end) continue;
    const int32_t own = list(all[r].own, all[end - 1].end - all[end - 1].n_shared);
    for (; r < end; ++r) seen[r].own = own;
  }
  const auto fill_kind_of = [&](const Places& kind, std::span<const VisibleCells> visible) {
    for (size_t r = 0; r < seen.size(); ++r) {
      seen[r].n_shared = visible[r].n_shared;
      seen[r].first = visible[r].first;
      seen[r].end = visible[r].end;
    }
    fill_kind(kind, seen, n_tiles, to);
  };
  fill_kind_of(all_, all);
  if (has_windows_) fill_kind_of(windowed_, rows.windowed());
}

void SeenLayout::fill_kind(const Places& places, std::span<const SeenCells> rows, int n_tiles,
                           std::byte* to) const {
  const int item_chunks = choose_item_chunks(rows, shape_, partial_floats());
  AttentionItems items;
  make_attention_items(rows, shape_.heads_per_kv(), item_chunks, n_tiles, items);
  CHECK(std::ssize(items.items) <= most_items_ && items.n_partials <= most_partials_);
  at<int32_t>(to, places.counts)[0] = static_cast<int32_t>(items.items.size());
  at<int32_t>(to, places.counts)[1] = item_chunks;
  std::ranges::copy(rows, at<SeenCells>(to, places.rows));
  std::ranges::copy(items.partial_start, at<int32_t>(to, places.partial_start));
  std::ranges::copy(items.items, at<AttentionItem>(to, places.items));
}

AttentionWork SeenLayout::work(const std::byte* base, bool is_windowed) const {
  const Places& places = is_windowed ? windowed_ : all_;
  const auto in = [&]<typename T>(const T*, size_t place) {
    return reinterpret_cast<const T*>(base + place);
  };
  AttentionWork work{};
  work.shape = shape_;
  work.cells = in(work.cells, cells_);
  work.rows = in(work.rows, places.rows);
  work.items = in(work.items, places.items);
  work.n_items = in(work.n_items, places.counts);
  work.most_items = most_items_;
  work.item_chunks = work.n_items + 1;
  work.partial_start = in(work.partial_start, places.partial_start);
  work.n_rows = n_rows_;
  return work;
}

}  // namespace forerun::cuda
