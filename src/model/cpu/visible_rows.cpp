#include "model/cpu/visible_rows.h"

#include <algorithm>

namespace forerun {

void VisibleRows::append_path(const KvCells& cells, const Row& row) {
  const size_t start = own_.size();
  for (std::optional<NodeId> node = row.node; node; node = cells.parent(row.sequence, *node)) {
    own_.push_back(cells.cell(row.sequence, *node));
  }
  std::reverse(own_.begin() + static_cast<std::ptrdiff_t>(start), own_.end());
  own_start_.push_back(start);
}

void VisibleRows::fill(const KvCells& cells, std::span<const Row> rows, int window) {
  own_.clear();
  own_start_.clear();
  all_.clear();
  windowed_.clear();
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const bool follows = r > 0 && row.sequence == rows[r - 1].sequence &&
                         cells.parent(row.sequence, row.node) == rows[r - 1].node;
    if (follows) {
      // A chain shares one list: its rows see more and more of it.
      own_start_.push_back(own_start_.back());
      own_.push_back(cells.cell(row.sequence, row.node));
    } else {
      append_path(cells, row);
    }
    const int32_t position = to_int(cells.position(row.sequence, row.node));
    const auto n_own = static_cast<int32_t>(own_.size() - own_start_.back());
    all_.push_back({.shared = cells.committed_cells(row.sequence).data(),
                    .own = nullptr,
                    .n_shared = position + 1 - n_own,
                    .first = 0,
                    .end = position + 1});
  }
  for (size_t r = 0; r < rows.size(); ++r) all_[r].own = own_.data() + own_start_[r];
  if (window == 0) return;
  windowed_ = all_;
  for (VisibleCells& row : windowed_) row.first = std::max(0, row.end - window);
}

}  // namespace forerun
