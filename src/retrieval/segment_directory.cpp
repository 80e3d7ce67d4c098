#include "retrieval/segment_directory.h"

#include <limits>

#include "core/check.h"

namespace forerun {
namespace {

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// The numbers of keys per level, lowest level first.
struct Shape {
  std::array<int64_t, SegmentDirectory::kMaxLevels> sizes{};
  int n_levels = 0;

  explicit Shape(int64_t n_entries) {
    int64_t size = divide_up(n_entries, SegmentDirectory::kStride);
    if (size == 0) return;
    sizes[static_cast<size_t>(n_levels++)] = size;
    while (size > SegmentDirectory::kFanout) {
      size = divide_up(size, SegmentDirectory::kFanout);
      CHECK(n_levels < SegmentDirectory::kMaxLevels);
      sizes[static_cast<size_t>(n_levels++)] = size;
    }
  }

  int64_t padded(int level) const {
    return divide_up(sizes[static_cast<size_t>(level)], SegmentDirectory::kFanout) *
           SegmentDirectory::kFanout;
  }
  int64_t total() const {
    int64_t sum = 0;
    for (int level = 0; level < n_levels; ++level) sum += padded(level);
    return sum;
  }
};

}  // namespace

int64_t SegmentDirectory::n_keys(int64_t n_entries) {
  return Shape(n_entries).total();
}

SegmentDirectory::SegmentDirectory(std::span<const uint64_t> keys, int64_t n_entries)
    : keys_(keys), n_entries_(n_entries) {
  const Shape shape(n_entries);
  CHECK(static_cast<int64_t>(keys.size()) == shape.total());
  n_levels_ = shape.n_levels;
  const uint64_t* next = keys.data();
  for (int level = n_levels_ - 1; level >= 0; --level) {
    levels_[static_cast<size_t>(level)] = next;
    next += shape.padded(level);
  }
}

std::vector<uint64_t> make_directory(const SegmentText& text, std::span<const uint32_t> order,
                                     const KeyFormat& format) {
  const Shape shape(static_cast<int64_t>(order.size()));
  std::vector<uint64_t> keys(static_cast<size_t>(shape.total()), std::numeric_limits<uint64_t>::max());
  if (shape.n_levels == 0) return keys;

  // Level 0 is stored last; the levels above it are taken from it.
  uint64_t* level = keys.data() + keys.size() - shape.padded(0);
  text.visit([&](const auto* tokens) {
    for (int64_t i = 0; i < shape.sizes[0]; ++i) {
      level[i] = format.key(tokens, order[static_cast<size_t>(i * SegmentDirectory::kStride)]);
    }
  });
  for (int above = 1; above < shape.n_levels; ++above) {
    const uint64_t* below = level;
    level -= shape.padded(above);
    for (int64_t i = 0; i < shape.sizes[static_cast<size_t>(above)]; ++i) {
      level[i] = below[i * SegmentDirectory::kFanout];
    }
  }
  return keys;
}

}  // namespace forerun
