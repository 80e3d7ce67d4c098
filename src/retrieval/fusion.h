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
#include "tree/best_first.h"
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
  struct Proposal {
    Candidate candidate;
    const FusionSource* source;
  };
  // Where candidates are proposed: below which node, at which depth, and the score that their shares are
  // of.
  struct Place {
    int32_t parent;
    int depth;
    float score;
  };
  void propose(const FusionSource& source, uint64_t handle, const Place& place);

  BestFirst<float, int32_t> queue_;  // of proposals: the parents; small, as the queue moves them about
  std::vector<Proposal> proposals_;  // in the order in which the queue found them
  std::vector<Candidate> children_;
};

}  // namespace forerun
