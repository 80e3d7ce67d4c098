// Where drafts come from: the seam that every drafter implements.
//
// A DraftMethod belongs to the engine and holds what requests share (a datastore, a trie
// of earlier answers). It makes a Drafter for each request. Drafters propose, the model
// decides: whatever they propose, the text stays the same, and only its speed changes.
//
// To add one: a header with its options struct (core/option_visitor.h), a source file, a
// test, and a line in draft/methods.cpp.
//
// Not thread-safe: a method and its drafters are used from one thread at a time. Drafting
// is deterministic: the same texts give the same tree.
#pragma once

#include <memory>
#include <span>

#include "core/ids.h"
#include "layers/request_view.h"
#include "tree/draft_tree.h"

namespace forerun {

struct DraftLimits {
  int max_nodes;  // of the tree
  int max_depth;  // of its deepest node
};

// What the model makes of a tree's nodes, accepted or not.
class TargetTokens {
 public:
  virtual ~TargetTokens() = default;
  // The token that the model puts behind `node`, or behind the text (kRoot). Costs a draw.
  virtual TokenId after(int32_t node) const = 0;
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // The request it drafts for, which outlives it. For drafters that use the model.
  virtual void attach(const RequestView& /*request*/) {}

  // Adds to `tree`, which is empty, what may follow the text.
  virtual void draft(const DraftLimits& limits, DraftTree& tree) = 0;

  // A pass over the tree of the last draft() (perhaps pruned) is done; append() follows.
  // For drafters that learn from rows which were not accepted.
  virtual void observe(const DraftTree& /*tree*/, const TargetTokens& /*target*/) {}

  // The text grew by these tokens.
  virtual void append(std::span<const TokenId> tokens) = 0;

  // Tokens per second that its drafts are expected to bring now, with so many requests in a pass; 0:
  // nothing is known. For methods whose drafts take time.
  virtual double expected_rate(int /*n_requests*/) const { return 0; }

  // The request ended in good order; others may learn from its text.
  virtual void finish() {}
};

// A draft that is wanted.
struct DraftJob {
  Drafter* drafter;
  DraftLimits limits;
  DraftTree* tree;     // empty
  int n_requests = 1;  // that get a token by the same pass
  // Tokens per second that the request gets anyway, by other drafts; 0: nothing is known. For
  // methods whose drafts take time.
  double rival_rate = 0;
  // What texts propose, and the chance that the text takes each node, for methods that can read
  // several tokens in the time of one. nullptr: nothing.
  const DraftTree* hint = nullptr;
  std::span<const double> hint_chances = {};
};

class DraftMethod {
 public:
  virtual ~DraftMethod() = default;
  // A drafter for a request with this prompt. The method outlives it.
  virtual std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) = 0;
  // Drafts for several requests at once, as a method that runs a model should.
  virtual void draft(std::span<const DraftJob> jobs) {
    for (const DraftJob& job : jobs) job.drafter->draft(job.limits, *job.tree);
  }
  // Whether its drafts are worth nothing when only their best path is verified.
  virtual bool needs_trees() const { return false; }
  // Whether its drafters need RequestView::prompt_state(), which costs the prompt's pass a
  // little. Of a method it is always the same.
  virtual bool wants_prompt_state() const { return false; }
};

}  // namespace forerun
