// What followed the last tokens of a text wherever segments have them: the datastore's
// part of SSSD (Marzollo et al., ACL 2026, Algorithm 2).
//
// The longest prefix is searched first. While there are too few samples its first token is
// dropped and the rest is searched too, into the same trie.
//
// In the paper and in its code each sample counts one, so a few samples of a long prefix
// drown in the many of a short one, though they are the better guide. In our variant a
// prefix with n samples, of which u continue differently, takes n / (n + u + 8) of the
// weight that longer ones left: Witten and Bell's rule for n-grams ("The zero-frequency
// problem", 1991, method C) with some more doubt. What is left at the end is the chance
// that something else follows.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"
#include "retrieval/continuation_trie.h"
#include "retrieval/sampling.h"
#include "retrieval/segment_search.h"

namespace forerun {

struct ContinuationOptions {
  RetrievalVariant variant = RetrievalVariant::kPooled;
  int max_prefix = 4;     // tokens of the text that are searched, at most Segment::kOrderDepth
  int max_samples = 100;  // per prefix
  int min_samples = 50;   // below which a shorter prefix is searched too
};

// Keeps its memory from one search to the next. Not thread-safe: one per thread.
class ContinuationSearch {
 public:
  explicit ContinuationSearch(const ContinuationOptions& options) : options_(options) {}

  // The continuations of `text`, at most `max_length` tokens each. Valid until the next
  // call.
  const ContinuationTrie& search(std::span<const Segment* const> segments, std::span<const TokenId> text,
                                 int max_length);

  // The chance that what follows is among the continuations of the last search, as far as
  // the variant tells: at most 1.
  float confidence() const {
    return options_.variant == RetrievalVariant::kPooled ? static_cast<float>(1.0 - unassigned_) : 1.0f;
  }

 private:
  bool enough() const;
  void read_continuations(std::span<const Segment* const> segments, int match_length, int max_length);
  float take_weight();
  void insert_all(int match_length);

  ContinuationOptions options_;
  SegmentSearch segment_search_;
  ContinuationTrie trie_;

  int n_samples_ = 0;            // of all prefixes
  double unassigned_ = 1.0;      // weight that shorter prefixes get
  std::vector<Sample> samples_;  // of one prefix
  std::vector<int64_t> places_;
  std::vector<TokenId> tokens_;  // max_length per sample
  std::vector<int> lengths_;
  std::vector<TokenId> first_tokens_;
};

}  // namespace forerun
