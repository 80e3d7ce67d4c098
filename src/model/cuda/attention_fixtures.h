// Rows for tests of attention.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "model/cuda/attention.h"

namespace forerun::cuda {

// Rows of several sequences: chains and trees behind contexts of any length, with or without a window.
struct TestRows {
  std::vector<int32_t> cells;  // 0, 1, ... in the order in which they were made
  std::vector<SeenCells> seen;
};

// At most `most_rows` of each sequence.
inline TestRows random_rows(std::mt19937& random, int window, int most_rows = 40) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  TestRows rows;
  int next_cell = 0;
  const auto new_cell = [&] { return next_cell++; };
  const auto push = [&](int32_t shared, int32_t own, int32_t n_shared, int32_t end) {
    rows.seen.push_back({.shared = shared,
                         .own = own,
                         .n_shared = n_shared,
                         .first = window == 0 ? 0 : std::max(0, end - window),
                         .end = end});
  };
  for (int sequence = 0, n = 1 + below(3); sequence < n; ++sequence) {
    const auto shared = static_cast<int32_t>(rows.cells.size());
    const int context = below(2) == 0 ? below(1400) : 128 * below(11) + below(3);
    for (int i = 0; i < context; ++i) rows.cells.push_back(new_cell());
    const int n_rows = 1 + below(most_rows);
    const auto own = static_cast<int32_t>(rows.cells.size());
    if (below(2) == 0) {  // a chain
      for (int i = 0; i < n_rows; ++i) {
        rows.cells.push_back(new_cell());
        push(shared, own, context, context + i + 1);
      }
      continue;
    }
    std::vector<std::vector<int32_t>> paths;  // a tree, every path a list of its own
    for (int i = 0; i < n_rows; ++i) {
      std::vector<int32_t> path;
      if (i > 0 && below(4) > 0) path = paths[static_cast<size_t>(below(i))];
      path.push_back(new_cell());
      const auto start = static_cast<int32_t>(rows.cells.size());
      rows.cells.insert(rows.cells.end(), path.begin(), path.end());
      push(shared, start, context, context + static_cast<int32_t>(path.size()));
      paths.push_back(path);
    }
  }
  return rows;
}

inline int32_t cell_of(const TestRows& rows, const SeenCells& row, int position) {
  const int place = position < row.n_shared ? row.shared + position : row.own + position - row.n_shared;
  return rows.cells[static_cast<size_t>(place)];
}

}  // namespace forerun::cuda
