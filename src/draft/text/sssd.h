// SSSD: what followed the last tokens of the text, in the text itself and in datastores.
//
// Marzollo et al., "SSSD: Simply-Scalable Speculative Decoding", ACL 2026. Continuations
// from the request's own text (retrieval/input_trie.h) and from other texts
// (retrieval/continuation_search.h) are fused into one tree, the most probable first
// (retrieval/fusion.h).
//
// Where the paper and the authors' code differ, `variant` says whom to follow:
// - "paper": prefixes of 4 down to 2 tokens while the tree has fewer than 50 nodes;
// - "code": prefixes of 4 down to 1 token while there are fewer than 50 samples; samples
//   of a longer prefix count again among those of a shorter one;
// - "pooled", ours: as the code, but the samples are spread over all segments as if they
//   were one; what longer prefixes show counts as much as their samples agree
//   (retrieval/continuation_search.h); the newest tokens of the text can be found as soon
//   as they are there; and the text counts no less than datastores.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/option_visitor.h"
#include "draft/drafter.h"
#include "retrieval/sampling.h"

namespace forerun {

struct SssdOptions {
  std::string variant = "pooled";
  int prefix = 4;               // tokens to search for in datastores
  int samples = 100;            // continuations to look at per prefix
  int min_samples = 50;         // below which a shorter prefix is searched too
  int branch = 0;               // tokens to read behind a place; 0: by the size of the tree
  int input_prefix = 4;         // tokens to search for in the text
  int input_window = 0;         // tokens read there, those searched for among them
  int children = 5;             // of a node
  double input_discount = 0.0;  // factor of what the text shows, not of datastores
  // Zeros above mean: as the variant has it.

  void describe(OptionVisitor& visitor) {
    visitor.visit({"variant", "Whom to follow where the paper, its code and we differ"}, variant,
                  kRetrievalVariantNames);
    visitor.visit({"prefix", "Last tokens of the text to search for in datastores"}, prefix,
                  {1, Segment::kOrderDepth});
    visitor.visit({"samples", "Continuations to look at per prefix"}, samples, {1, 10000});
    visitor.visit({"min-samples", "Search a shorter prefix too below so many samples"}, min_samples,
                  {1, 10000});
    visitor.visit({"branch", "Tokens to read behind each place (0: by the size of the tree)"}, branch,
                  {0, 64});
    visitor.visit({"input-prefix", "Last tokens of the text to search for in the text itself"},
                  input_prefix, {1, 32});
    visitor.visit(
        {"input-window", "Tokens to read there, those searched for among them (0: by variant)"},
        input_window, {0, 64});
    visitor.visit({"children", "Limit on the children of a node"}, children, {1, 1000});
    visitor.visit({"input-discount", "Factor of what the text itself shows (0: by variant)"},
                  input_discount, {0.0, 1.0});
  }
};

class SssdDrafter : public Drafter {
 public:
  // Throws Error{kInvalidArgument} for a variant that there is not. `segments` gives the segments to
  // search whenever a tree is drafted; may be empty.
  SssdDrafter(SssdOptions options, SegmentSource segments);
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override;

 private:
  SssdOptions options_;
  SegmentSource segments_;
};

// How many tokens are read behind a place of a datastore for a tree of so many nodes: deep
// trees need room.
int sssd_branch(int max_nodes);

}  // namespace forerun
