// The upper part of a segment's index: the keys of every 128th entry, with a tree above
// them, so that a search touches few lines of memory before it reads the text.
//
// Level 0 has the key (segment_text.h) of every kStride-th entry. Each level above has
// every kFanout-th key of the one below it, up to one that fits a cache line. Levels are
// stored highest first, each filled up to a multiple of kFanout with the largest number.
// About 0.07 bytes per entry.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "retrieval/segment_text.h"

namespace forerun {

// A view; safe to use from any thread.
class SegmentDirectory {
 public:
  static constexpr int64_t kStride = 128;
  static constexpr int64_t kFanout = 8;  // keys of a cache line
  static constexpr int kMaxLevels = 12;
  static constexpr int kKeyTokens = 8;  // a key has no more, whatever the vocabulary

  SegmentDirectory() = default;
  // `keys`: what make_directory() returned, at an address that is a multiple of 8.
  SegmentDirectory(std::span<const uint64_t> keys, int64_t n_entries);

  std::span<const uint64_t> keys() const { return keys_; }
  // How many numbers the directory of so many entries has.
  static int64_t n_keys(int64_t n_entries);

  // A search for the first entry whose key is not below `target`: n_levels() steps from
  // {target}, after which begin <= that entry <= end. Between steps the line that the next
  // one reads may be fetched.
  struct Search {
    uint64_t target;
    int64_t group = 0;  // of the next level to read
    int64_t count = 0;  // of keys below the target in the last level read
  };
  int n_levels() const { return n_levels_; }
  void prefetch(const Search& search, int level) const {
    __builtin_prefetch(levels_[static_cast<size_t>(level)] + search.group * kFanout);
  }
  void step(Search& search, int level) const {
    const uint64_t* keys = levels_[static_cast<size_t>(level)] + search.group * kFanout;
    int64_t count = 0;
    for (int64_t i = 0; i < kFanout; ++i) count += keys[i] < search.target ? 1 : 0;
    search.count = search.group * kFanout + count;
    search.group = search.count == 0 ? 0 : search.count - 1;
  }
  int64_t begin(const Search& search) const {
    return search.count == 0 ? 0 : (search.count - 1) * kStride + 1;
  }
  int64_t end(const Search& search) const { return std::min(search.count * kStride, n_entries_); }

 private:
  std::span<const uint64_t> keys_;
  int64_t n_entries_ = 0;
  int n_levels_ = 0;
  std::array<const uint64_t*, kMaxLevels> levels_{};
};

// The directory of an index that is in order.
std::vector<uint64_t> make_directory(const SegmentText& text, std::span<const uint32_t> order,
                                     const KeyFormat& format);

}  // namespace forerun
