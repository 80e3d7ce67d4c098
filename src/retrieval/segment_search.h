// Finds some tokens in several segments at once.
//
// A binary search waits for memory at every step. Here the searches for both ends of all
// ranges go step by step together, each asking for its next line of memory before the
// others take their steps, so that the waiting times overlap.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "retrieval/segment.h"

namespace forerun {

// Keeps its memory from one search to the next. Not thread-safe: one per thread.
class SegmentSearch {
 public:
  // Where `tokens` (1 to Segment::kOrderDepth) occur in each of the segments. The answer
  // is valid until the next call.
  std::span<const Segment::Range> find(std::span<const Segment* const> segments,
                                       std::span<const TokenId> tokens);

 private:
  // The search for one end of a range: the first entry that is not below the tokens or,
  // for its upper end, above them. It lies in [begin, end].
  struct Bound {
    const Segment* segment;
    bool upper;
    SegmentDirectory::Search directory;
    int64_t begin;
    int64_t end;
    int64_t place;  // of the entry in the middle
    int64_t middle() const { return begin + (end - begin) / 2; }
  };
  void add_segment(const Segment& segment, std::span<const TokenId> tokens);
  void descend(std::span<const TokenId> tokens);
  void bisect(std::span<const TokenId> tokens);

  std::vector<Bound> bounds_;  // two per segment
  std::vector<Bound*> active_;
  std::vector<Segment::Range> ranges_;
};

}  // namespace forerun
