// How each rule draws the model's token behind a node of a draft. Used by verify() alone;
// the proofs are in rules.cpp.
#pragma once

#include <cstdint>

#include "core/ids.h"
#include "sampling/keyed_noise.h"
#include "sampling/sampler.h"
#include "tree/draft_tree.h"
#include "verify/token_weights.h"
#include "verify/verify.h"

namespace forerun {

// One rule with the random numbers of one request. Not thread-safe: it has buffers. The
// sampler outlives it.
class RuleDraw {
 public:
  RuleDraw(AcceptRule rule, const Sampler& sampler);

  // The token at `position`, behind `node`: distributed as `p`, the sampler's final
  // distribution there.
  TokenId draw(const Distribution& p, const DraftTree& tree, int32_t node, Position position);

 private:
  TokenId walk_children(const Distribution& p, const DraftTree& tree, int32_t node, Position position);
  TokenId reject_children(const Distribution& p, const DraftTree& tree, int32_t node, Position position);

  AcceptRule rule_;
  const Sampler& sampler_;
  KeyedNoise coins_;  // accept the i-th child?
  KeyedNoise draws_;  // which token instead?
  TokenWeights p_;
  TokenWeights q_;
};

}  // namespace forerun
