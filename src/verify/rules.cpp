// The rules and why each is lossless.
//
// What is to be shown. p is the model's final distribution at a node (after bias,
// penalties, truncation and temperature), as plain decoding would use it there. A rule is
// lossless if, whatever led the walk to this node, the token it draws has distribution p.
// Then the text has its distribution token by token, and the tree decides only how many
// tokens one pass yields. In particular it does no harm that the walk follows every child
// that equals the token drawn, also one that the rule did not try (a second child under
// kLeviathan): the token stands already, and its logits are there.
//
// Random numbers. Threefry maps distinct keys and counters to bits that behave as
// independent, and each use has its own:
//   - Sampler::draw uses (seed; position, token) with positions from 0 on. A drafter that
//     samples uses the same, so that under kMatch it agrees often.
//   - kTargetOnly, kLeviathan and kRejection must not: a proposal x that won with this
//     noise says much about the noise of all tokens, and a draw with it would lean away
//     from x or towards it. They have two streams of their own, whose keys are the bits at
//     position -1, where no token stands: coins_ with the counter (position, sibling), and
//     draws_ with (position, 0).
// A number of these streams decides about one position, and a position is decided once, in
// the step that emits its token. So they are independent of the text before it and of
// every draft for it, however the draft came about.
//
// kMatch. The token is plain decoding's by definition, a function of text, logits, options
// and seed. Any drafter may use anything, the noise included.
//
// kTargetOnly (the walk of SGLang's speculative sampling kernel with both thresholds at
// 1). It inverts the cumulative sum of p with the children put in front: with u uniform in
// [0, 1) and independent of the tree, the candidate at which the running sum first exceeds
// u has distribution p, whatever the order. Any drafter. The comparison is u < sum: with
// u <= sum, a child that the model excludes would be accepted at u = 0. SGLang draws anew
// from the rest after the last child; given that u lies beyond the children it is uniform
// there, so one number does.
//
// kLeviathan (Leviathan, Kalman, Matias 2023, arXiv 2211.17192; Chen et al. 2023, arXiv
// 2302.01318) and kRejection (Jeon et al. 2024, arXiv 2402.14160). The children x_1, x_2,
// ... are tried in turn against r, at first p. x_j was drawn from q_j, which is the draft's
// distribution q without x_1 ... x_(j-1), renormalised. Accept x_j with the probability
// min(1, r(x_j) / q_j(x_j)); otherwise go on with r' = (r - q_j)+, normalised. When all are
// refused, draw from r. By induction from the last child up, what comes out from x_j on
// has distribution r: token y is accepted at once with the probability min(q_j(y), r(y)).
// The trial fails with the probability sum (q_j - r)+ = sum (r - q_j)+, and then y comes
// out with r'(y): together (r(y) - q_j(y))+. The two add up to r(y). kLeviathan tries x_1
// alone. A refused x_j has r(x_j) < q_j(x_j), so r' excludes it: no child is drawn twice.
//
// A child that was chosen, not drawn, is the case that q_j is all on x_j: accept it with
// the probability r(x_j), else strike it out of r. This is done where the node has no
// distribution, and for a child that its node's distribution does not contain.
//
// Conditions of the last two, which a drafter that sets a distribution must keep:
//   - q is what it really drew with, after its own truncation and temperature, and siblings
//     come in the order drawn. The k largest of log q + Gumbel noise in falling order are
//     such a draw (Kool, van Hoof, Welling 2019, arXiv 1903.06059), so the keyed noise of
//     the sampler serves.
//   - Whether x_j is offered at all may depend on the text, on x_1 ... x_(j-1) and on noise
//     of earlier positions, never on x_j or anything drawn behind it. Leaving out a draw
//     because it turned out unlikely makes the likely ones too frequent, also when the
//     token is then drawn from p. Later positions are drawn with the same noise again in
//     the next step, so a shape that looks at them makes text and noise dependent.
#include "verify/rules.h"

#include "core/check.h"

namespace forerun {
namespace {

KeyedNoise stream(uint64_t seed, int32_t number) {
  return KeyedNoise(KeyedNoise(seed).bits(Position{-1}, TokenId{number}));
}

// In [0, 1).
double uniform(const KeyedNoise& noise, Position position, int32_t index) {
  return static_cast<double>(noise.bits(position, TokenId{index}) >> 11) * 0x1p-53;
}

}  // namespace

RuleDraw::RuleDraw(AcceptRule rule, const Sampler& sampler)
    : rule_(rule),
      sampler_(sampler),
      coins_(stream(sampler.seed(), 0)),
      draws_(stream(sampler.seed(), 1)) {}

TokenId RuleDraw::draw(const Distribution& p, const DraftTree& tree, int32_t node, Position position) {
  CHECK(p.size() > 0);
  switch (rule_) {
    case AcceptRule::kMatch: break;
    case AcceptRule::kTargetOnly: return walk_children(p, tree, node, position);
    case AcceptRule::kLeviathan:
    case AcceptRule::kRejection: return reject_children(p, tree, node, position);
  }
  return sampler_.draw(p, position);
}

TokenId RuleDraw::walk_children(const Distribution& p, const DraftTree& tree, int32_t node,
                                Position position) {
  p_.assign(p);
  double u = uniform(draws_, position, 0);
  for (const int32_t child : tree.children(node)) {
    const TokenId x = tree[child].token;
    const double share = p_.share(x);
    if (u < share) return x;
    // u is now uniform in [share, 1); share is below 1, so something is left.
    u = (u - share) / (1 - share);
    p_.remove(x);
  }
  return p_.at(u);
}

TokenId RuleDraw::reject_children(const Distribution& p, const DraftTree& tree, int32_t node,
                                  Position position) {
  p_.assign(p);
  const Distribution* q = tree.distribution(node);
  q_.assign(q != nullptr ? *q : Distribution{});
  int32_t n_tried = 0;
  for (const int32_t child : tree.children(node)) {
    const TokenId x = tree[child].token;
    const double drawn_share = q_.share(x);
    const bool was_drawn = drawn_share > 0;
    const double coin = uniform(coins_, position, n_tried++);
    if (coin * (was_drawn ? drawn_share : 1.0) < p_.share(x)) return x;
    if (was_drawn) {
      p_.subtract(q_);
      q_.remove(x);
    } else {
      p_.remove(x);
    }
    if (rule_ == AcceptRule::kLeviathan) break;
  }
  return p_.at(uniform(draws_, position, 0));
}

}  // namespace forerun
