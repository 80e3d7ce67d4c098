#include "retrieval/store/merge_policy.h"

#include <numeric>

namespace forerun {

size_t merge_from(std::span<const int64_t> sizes, int64_t max_size) {
  size_t from = sizes.size();
  int64_t younger = 0;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (younger + sizes[i] > max_size) break;
    if (i + 1 < sizes.size() && sizes[i] < kRatio * younger) from = i;
    younger += sizes[i];
  }
  return from;
}

size_t count_to_drop(std::span<const int64_t> sizes, int64_t capacity) {
  if (capacity == 0) return 0;
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  size_t n = 0;
  while (total > capacity && n + 1 < sizes.size()) total -= sizes[n++];
  return n;
}

std::vector<size_t> runs_up_to(std::span<const int64_t> sizes, int64_t max_size) {
  std::vector<size_t> ends;
  int64_t total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0 && total + sizes[i] > max_size) {
      ends.push_back(i);
      total = 0;
    }
    total += sizes[i];
  }
  if (!sizes.empty()) ends.push_back(sizes.size());
  return ends;
}

}  // namespace forerun
