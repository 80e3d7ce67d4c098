// Several methods at once: their trees, laid over each other.
//
// Tokens that more than one of them proposes are one node, and a node knows who proposed it
// (DraftNode::proposers): what two methods agree on is worth more than what one says, and
// whoever chooses among nodes can learn how much.
#pragma once

#include <memory>
#include <span>

#include "draft/drafter_group.h"

namespace forerun {

class MixedMethod final : public DraftMethod {
 public:
  // At most kMaxProposers methods. Each gets its share of a tree's nodes, the first ones
  // what does not divide.
  explicit MixedMethod(DraftMethods methods);
  std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) override;
  bool wants_prompt_state() const override { return any_wants_prompt_state(methods_); }

 private:
  DraftMethods methods_;
};

}  // namespace forerun
