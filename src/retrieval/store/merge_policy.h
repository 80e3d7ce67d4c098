// Which segments become one, and which are dropped.
//
// Segments are searched one by one, so there should be few; merging builds the index anew,
// so a text should not be merged often. Hence sizes fall geometrically: a segment is at
// least kRatio times as large as all younger ones together, except that none grows beyond
// a maximum. N tokens then lie in about log(N) / log(kRatio + 1) segments, and each was
// merged at most about kRatio + 1 times per level. (The logarithmic method of Bentley and
// Saxe, "Decomposable searching problems I", 1980, with another ratio: of those that cost
// about the same the one with fewer segments.)
//
// Pure functions of the sizes in tokens, oldest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace forerun {

constexpr int64_t kRatio = 3;

// The oldest segment that shall be merged with all younger ones; sizes.size() if none.
size_t merge_from(std::span<const int64_t> sizes, int64_t max_size);

// How many of the oldest to drop until the rest holds at most `capacity` (0: any number).
// Never the youngest.
size_t count_to_drop(std::span<const int64_t> sizes, int64_t capacity);

// Cuts a list into runs that become a segment each, none above `max_size` unless it is a
// single one: where each ends.
std::vector<size_t> runs_up_to(std::span<const int64_t> sizes, int64_t max_size);

}  // namespace forerun
