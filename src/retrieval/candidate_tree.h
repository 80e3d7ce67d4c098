// A tree of tokens that may follow, each with its share of what was seen to follow its
// parent: what fusion.h makes draft trees of.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"

namespace forerun {

struct Candidate {
  TokenId token;
  float share;      // of its parent: 0 < share <= 1
  uint64_t handle;  // for children()
  // How many tokens of the text were matched where it was seen; 0 where all candidates of
  // the tree have the same, which whoever made the tree knows.
  int32_t match_length = 0;
  int32_t n_seen = 0;  // how often it was seen there; 0: nobody counted
};

class CandidateTree {
 public:
  virtual ~CandidateTree() = default;
  // Appends the candidates that may follow the one with this handle, of those with equal
  // shares the more likely ones first.
  virtual void children(uint64_t handle, std::vector<Candidate>& out) const = 0;
};

}  // namespace forerun
