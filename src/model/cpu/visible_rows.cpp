#include "model/cpu/visible_rows.h"

#include <algorithm>
#include <utility>

namespace forerun {

void VisibleRows::append_path(const KvCells& cells, const Row& row) {
  const size_t start = own_.size();
  for (std::optional<NodeId> node = row.node; node; node = cells.parent(row.sequence, *node)) {
    own_.push_back(cells.cell(row.sequence, *node));
  }
  std::reverse(own_.begin() + static_cast<std::ptrdiff_t>(start), own_.end());
  own_start_.push_back(start);
}

void VisibleRows::fill(const KvCells& cells, std::span<const Row> rows, const SlidingWindow& window) {
  own_.clear();
  own_start_.clear();
  all_.clear();
  windowed_.clear();
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const bool same_sequence = r > 0 && row.sequence == rows[r - 1].sequence;
    if (same_sequence && row.node == rows[r - 1].node) {  // it fills up the pass
      own_start_.push_back(own_start_.back());
      all_.push_back(all_.back());
      continue;
    }
    if (same_sequence && cells.parent(row.sequence, row.node) == rows[r - 1].node) {
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
  n_listed_ = static_cast<int>(own_.size());
  int longest = 0;  // of this sequence
  for (size_t r = 0; r < rows.size(); ++r) {
    all_[r].own = own_.data() + own_start_[r];
    longest = std::max(longest, all_[r].n_shared);
    const bool is_last = r + 1 == rows.size() || all_[r + 1].shared != all_[r].shared;
    if (is_last) n_listed_ += std::exchange(longest, 0);
  }
  if (window.n == 0) return;
  windowed_ = all_;
  for (VisibleCells& row : windowed_) row.first = std::max(0, row.end - window.size_at(row.end - 1));
}

}  // namespace forerun
