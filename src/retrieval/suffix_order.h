// Puts the places of a text into the order of what stands there (segment.h says which).
//
// A full suffix array is not needed: texts are compared to a bounded depth, so long
// repeats cost no more than short ones. Places go into buckets by their first token; each
// bucket is sorted by the next few tokens, packed into a 64-bit key that is fetched from
// the text once; those with equal keys by the few after that, and so on. Buckets are
// independent, so threads share them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "retrieval/segment_text.h"

namespace forerun {

struct SuffixOrderTask {
  SegmentText text;  // ends with a separator
  int n_vocab;
  int depth;  // how many tokens are compared
  int n_threads = 1;
  // Called on the calling thread with the share of the work that is done; may be empty.
  // Returning false gives up.
  std::function<bool(double)> progress;
};

// Fills `order`, which has room for every token that is not a separator. Needs memory for
// one bucket per thread, at most about two and a half bytes per token in all, and a table
// per thread of one number per token of the vocabulary. False: given up, and `order` has
// anything in it.
bool make_suffix_order(const SuffixOrderTask& task, std::span<uint32_t> order);

}  // namespace forerun
