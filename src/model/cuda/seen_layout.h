// What the rows of a pass see, as attention reads it: one region of a pass's inputs, whose places depend
// on the shape of the pass alone, so that a captured pass serves any texts.
#pragma once

#include <cstddef>
#include <span>

#include "model/config.h"
#include "model/cpu/visible_rows.h"
#include "model/cuda/attention.h"
#include "model/kv_type.h"

namespace forerun::cuda {

AttentionShape attention_shape(const ModelConfig& config);
// For such rows; part of the shape of a pass.
int attention_tiles(const ModelConfig& config, KvType kv_type, const VisibleRows& rows);
// For the rows of one text.
int attention_tiles(const ModelConfig& config, KvType kv_type, int n_rows);

class SeenLayout {
 public:
  // For passes of so many rows whose lists of cells have up to `n_listed` together.
  SeenLayout(const ModelConfig& config, int n_rows, int n_listed);

  size_t n_bytes() const { return n_bytes_; }
  int64_t partial_floats() const;

  void fill(const VisibleRows& rows, int n_tiles, std::byte* to) const;
  // What attention reads of it, of layers with a window or of all others; the rest of the work is left
  // out.
  AttentionWork work(const std::byte* at, bool is_windowed) const;

 private:
  // Places of one kind of layers.
  struct Places {
    size_t counts;  // of items, chunks of an item
    size_t rows;
    size_t partial_start;
    size_t items;
  };
  void fill_kind(const Places& places, std::span<const SeenCells> rows, int n_tiles,
                 std::byte* to) const;

  AttentionShape shape_;
  bool has_windows_;
  int n_rows_;
  int n_listed_;
  int most_items_;     // of a pass
  int most_partials_;  // results of items for single rows
  Places all_{}, windowed_{};
  size_t cells_ = 0;
  size_t n_bytes_ = 0;
};

}  // namespace forerun::cuda
