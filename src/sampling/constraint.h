// What a text may go on with: where it stands in a grammar.
//
// A value that never changes: each branch of a draft tree has its own, made from its parent's. Use all
// that come from one request on one thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ids.h"

namespace forerun {

class Constraint {
 public:
  virtual ~Constraint() = default;

  virtual bool allows(TokenId token) const = 0;
  // Sets the logits of all tokens that are not allowed to -infinity. Takes far longer than allows().
  virtual void mask(std::span<float> logits) const = 0;
  // Behind a token. One that is not allowed is followed by nothing.
  virtual std::shared_ptr<const Constraint> after(TokenId token) const = 0;
  // The tokens of the text that must follow, as far as there is only one; in a text the model may divide
  // it into others. Empty: nothing is sure.
  virtual std::vector<TokenId> forced() const { return {}; }
};

}  // namespace forerun
