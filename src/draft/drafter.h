// Where drafts come from: the seam that drafters of texts implement. Those that run a model have one
// of their own (draft/model/model_drafter.h), since their drafts take passes.
//
// A Drafter belongs to the engine and holds what requests share (a datastore, a trie of earlier
// answers). It makes a RequestDrafter for each request. Drafters propose, the model decides:
// whatever they propose, the text stays the same, and only its speed changes.
//
// To add one: a header with its options struct (core/option_visitor.h), a source file, a
// test, and its options in draft/methods.h and a line in draft/methods.cpp.
//
// Not thread-safe: a drafter and what it makes are used from one thread at a time. Only draft() is
// called for several requests at once, so it changes nothing that requests share. Drafting is
// deterministic: the same texts give the same tree.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "core/ids.h"
#include "tree/draft_tree.h"

namespace forerun {

struct DraftLimits {
  int max_nodes;            // of the tree
  int max_depth;            // of its deepest node
  bool is_chain = false;    // nodes have one child at most
  bool from_stores = true;  // false: datastores are not searched

  // As many of these tokens as a chain may have.
  std::span<const TokenId> fitting(std::span<const TokenId> tokens) const {
    return tokens.first(std::min(tokens.size(), static_cast<size_t>(std::min(max_nodes, max_depth))));
  }
};

// What the model makes of a tree's nodes, accepted or not.
class TargetTokens {
 public:
  virtual ~TargetTokens() = default;
  // The token that the model puts behind `node`, or behind the text (kRoot). Costs a draw.
  virtual TokenId after(int32_t node) const = 0;
};

class RequestDrafter {
 public:
  virtual ~RequestDrafter() = default;

  // Adds to `tree`, which is empty, what may follow the text.
  virtual void draft(const DraftLimits& limits, DraftTree& tree) = 0;

  // A pass over the tree of the last draft() (perhaps pruned) is done; append() follows.
  // For drafters that learn from rows which were not accepted.
  virtual void observe(const DraftTree& /*tree*/, const TargetTokens& /*target*/) {}

  // The text grew by these tokens.
  virtual void append(std::span<const TokenId> /*tokens*/) {}

  // The request ended in good order; others may learn from its text.
  virtual void finish() {}
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // For a request with this prompt. The drafter outlives it.
  virtual std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> prompt) = 0;
};

}  // namespace forerun
