// REST: what follows the end of the text in a datastore.
//
// He, Zhong, Cai, Lee, He, "REST: Retrieval-Based Speculative Decoding", NAACL 2024 (arXiv
// 2311.08252). The longest end of the text, of 16 down to 2 tokens, that occurs in the
// datastore is looked up; the first 5,000 occurrences in the order of the index give 10
// tokens each; the 64 most frequent beginnings of these are the draft.
//
// Where we differ:
// - The code then drops the longest beginnings until the lengths of all of them together
//   are at most 64, to be sure that the tree has at most 64 nodes; so it mostly drafts far
//   fewer. Ours drafts the 64 most frequent nodes; of equals the deeper.
// - Of several segments the code takes 5,000 occurrences each, and so needs more time for
//   more segments. Ours takes 5,000 together, of each segment in proportion to what it has.
// - Without any occurrence nothing is drafted (the code drafts token 100).
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "core/option_visitor.h"
#include "draft/drafter.h"
#include "retrieval/segment.h"

namespace forerun {

struct RestOptions {
  int max_match = 16;  // tokens to match at most
  int min_match = 2;   // and at least
  int samples = 5000;  // occurrences to look at
  int branch = 10;     // tokens to read behind each
  int tokens = 64;     // to draft at most

  void describe(OptionVisitor& visitor) {
    visitor.visit({"max-match", "Tokens to match at most"}, max_match, {1, Segment::kOrderDepth});
    visitor.visit({"min-match", "Tokens to match at least"}, min_match, {1, Segment::kOrderDepth});
    visitor.visit({"samples", "Occurrences to look at"}, samples, {1, 1'000'000});
    visitor.visit({"branch", "Tokens to read behind each occurrence"}, branch, {1, 256});
    visitor.visit({"tokens", "Tokens to draft at most"}, tokens, {1, 1024});
  }
};

class RestDrafter : public Drafter {
 public:
  RestDrafter(RestOptions options, SegmentSource segments)
      : options_(options), segments_(std::move(segments)) {}
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) override;

 private:
  RestOptions options_;
  SegmentSource segments_;
};

}  // namespace forerun
