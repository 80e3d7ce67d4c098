// How much of what is drafted to verify: the seam that every rule implements.
//
// A verified token that the text takes saves a pass; every row makes the pass longer.
// Which trees pay depends on the machine, on how many requests share the pass and on how
// good the drafts are.
//
// Not thread-safe.
#pragma once

#include <forerun/request.h>

#include <span>

#include "core/ids.h"
#include "tree/draft_tree.h"

namespace forerun {

// Tokens that are drafted and verified at once at most: no published method has more.
inline constexpr int kLargestTree = 128;

// The pass that is being put together.
struct PassPlan {
  int n_decoding;     // requests that get their next token from it
  int n_prompt_rows;  // rows of prompts that share it
};

// A request's draft.
struct Proposal {
  RequestId request;
  int n_context;  // tokens of its text
  DraftTree* tree;
};

// What a request's text did after a proposal.
struct Outcome {
  RequestId request;
  std::span<const TokenId> tokens;  // that followed the text
};

// What a pass took.
struct PassCost {
  PassPlan plan;
  int n_rows;     // all of them
  int n_context;  // tokens of the decoding requests' texts together
  double seconds;
  double draft_seconds = 0;  // finding drafts for it, and telling drafters what became of the last
};

class TreeBudget {
 public:
  virtual ~TreeBudget() = default;

  // The largest tree worth asking the drafter for; 0: do not draft.
  virtual int max_nodes(RequestId request, const PassPlan& plan) = 0;

  // Prunes the trees of one pass to what pays.
  virtual void choose(std::span<Proposal> /*proposals*/, const PassPlan& /*plan*/) {}

  // After the pass, once per proposal that choose() saw, and for requests without one.
  virtual void observe(const Outcome& /*outcome*/) {}
  virtual void observe(const PassCost& /*cost*/) {}

  // The request is over.
  virtual void forget(RequestId /*request*/) {}
};

// As many nodes as given, always.
class FixedBudget final : public TreeBudget {
 public:
  explicit FixedBudget(int n_nodes) : n_nodes_(n_nodes) {}
  int max_nodes(RequestId, const PassPlan&) override { return n_nodes_; }

 private:
  int n_nodes_;
};

}  // namespace forerun
