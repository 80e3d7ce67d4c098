// Which cells of the KV cache each row of a pass sees, as our attention reads it.
//
// Valid for one pass: it points into the committed cells of the sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/kernels/kernels.h"
#include "model/kv_cells.h"
#include "model/pass.h"

namespace forerun {

class VisibleRows {
 public:
  // `window`: of layers that have one.
  void fill(const KvCells& cells, std::span<const Row> rows, const SlidingWindow& window);

  std::span<const VisibleCells> all() const { return all_; }
  std::span<const VisibleCells> windowed() const { return windowed_; }
  // How many cells all lists have: committed ones of a sequence count once for rows one after the other.
  int n_listed() const { return n_listed_; }

 private:
  void append_path(const KvCells& cells, const Row& row);

  std::vector<int32_t> own_;       // cells of scratch nodes, path by path
  std::vector<size_t> own_start_;  // per row: where its path begins
  std::vector<VisibleCells> all_;
  std::vector<VisibleCells> windowed_;
  int n_listed_ = 0;
};

}  // namespace forerun
