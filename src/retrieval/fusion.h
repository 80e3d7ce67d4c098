// Makes one draft tree of candidates from several sources: SSSD (Marzollo et al., ACL
// 2026, Algorithm 3).
//
// Best first: the candidate with the highest score becomes a node, and its children become
// candidates with its score times their share times the source's factor. Where two
// sources propose the same node the better score counts, and the children of both hang
// below it. Equal scores: the deeper first, then the one that was proposed first, so that
// the same candidates always give the same tree.
//
// Deviations from the paper: a limit on children, as the authors' code has it; and a
// source's first candidates have their share as their score, which the paper must mean.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "retrieval/candidate_tree.h"
#include "tree/draft_tree.h"

namespace forerun {

struct FusionSource {
  const CandidateTree* tree;
  uint64_t handle;  // whose children may follow the text
  DraftSource source;
  int match_length;  // for candidates that do not say
  float discount;    // of the first candidates
  float factor;      // of each level below them
};

struct FusionLimits {
  int max_nodes;
  int max_depth;
  int max_children;  // of a node, and of the root
};

// Keeps its memory from one draft to the next. Not thread-safe: one per thread.
class Fusion {
 public:
  // Adds nodes to `tree`, which is empty. Sources come in the order that decides ties.
  void fuse(std::span<const FusionSource> sources, const FusionLimits& limits, DraftTree& tree);

 private:
  // A candidate in the queue: small, as the queue moves them about.
  struct Item {
    float score;
    int32_t depth;
    int32_t rank;  // order of proposal; index of the candidate
    int32_t parent;
  };
  struct Proposal {
    Candidate candidate;
    const FusionSource* source;
  };
  static bool worse(const Item& a, const Item& b);
  // Proposes the children of a candidate: `base` has what they have in common, and the
  // score that their shares are of.
  void propose(const FusionSource& source, uint64_t handle, const Item& base);

  std::vector<Item> heap_;
  std::vector<Proposal> proposals_;
  std::vector<Candidate> children_;
};

}  // namespace forerun
