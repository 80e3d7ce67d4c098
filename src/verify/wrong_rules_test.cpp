// Rules and drafters that are known to be wrong, and that the measure of small_world.h must
// find: those of public code, and those that the proofs in rules.cpp warn of.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "verify/small_world.h"

namespace forerun {
namespace {

// Rules written down once more in the plainest way, with ordinary random numbers, and with
// one fault each.
enum class Fault {
  kNone,
  kRedraw,       // REST: after a draw that no child equals, emit a new draw
  kPadding,      // SWIFT: test token 0 behind a short path, with another path's distribution
  kRawBonus,     // SWIFT: behind a whole path, draw from the softmax of the raw logits
  kSharedNoise,  // draw from what is left with the noise that the children were drawn with
};

using Weights = std::map<TokenId, double>;

Weights weights_of(const Distribution& d) {
  Weights out;
  for (size_t i = 0; i < d.size(); ++i) out[d.tokens[i]] = std::exp(static_cast<double>(d.logprobs[i]));
  return out;
}

Weights normalised(Weights weights) {
  double total = 0;
  for (const auto& [token, weight] : weights) total += weight;
  std::erase_if(weights, [](const auto& entry) { return entry.second <= 0; });
  for (auto& [token, weight] : weights) weight /= total;
  return weights;
}

double at(const Weights& weights, TokenId token) {
  const auto it = weights.find(token);
  return it == weights.end() ? 0.0 : it->second;
}

Weights difference(Weights p, const Weights& q) {
  for (auto& [token, weight] : p) weight = std::max(weight - at(q, token), 0.0);
  return normalised(p);
}

class ReferenceWalk {
 public:
  ReferenceWalk(const VerifyInput& input, Fault fault)
      : input_(input),
        fault_(fault),
        random_(input.sampler.seed() * 64 + static_cast<uint64_t>(to_int(input.position))) {}

  template <typename Draw>
  void run(Verdict& verdict, Draw&& draw) {
    verdict = {};
    SamplerState state = input_.state;
    SamplerScratch scratch;
    for (int32_t node = kRoot;;) {
      const Distribution p = input_.sampler.distribution(input_.logits(node), state, scratch);
      verdict.next = draw(*this, node, p);
      const auto child = input_.tree.find_child(node, verdict.next);
      if (!child) return;
      verdict.path.push_back(*child);
      state.accept(verdict.next);
      node = *child;
    }
  }

  TokenId match(int32_t node, const Distribution& p) {
    const TokenId token = pick(weights_of(p));
    if (fault_ == Fault::kRedraw && !input_.tree.find_child(node, token)) return pick(weights_of(p));
    return token;
  }

  TokenId reject(int32_t node, const Distribution& model) {
    const DraftTree& tree = input_.tree;
    if (tree.n_children(node) == 0) return bonus(node, model);
    Weights p = weights_of(model);
    Weights q = weights_of(*tree.distribution(node));
    for (const int32_t c : tree.children(node)) {
      const TokenId x = tree[c].token;
      if (uniform() < at(p, x) / at(q, x)) return x;
      p = difference(p, q);
      q.erase(x);
      q = normalised(q);
    }
    if (fault_ != Fault::kSharedNoise) return pick(p);
    Distribution left;
    for (const auto& [token, weight] : p) {
      left.tokens.push_back(token);
      left.logprobs.push_back(static_cast<float>(std::log(weight)));
    }
    return input_.sampler.draw(left, input_.position + tree.depth(node));
  }

 private:
  TokenId bonus(int32_t node, const Distribution& model) {
    const DraftTree& tree = input_.tree;
    Weights p = weights_of(model);
    if (fault_ == Fault::kRawBonus) {
      p.clear();
      int32_t token = 0;
      for (float logit : input_.logits(node).all()) p[TokenId{token++}] = std::exp(double{logit});
      p = normalised(p);
    }
    if (fault_ == Fault::kPadding && tree.depth(node) < tree.max_depth()) {
      if (uniform() < at(p, TokenId{0})) return TokenId{0};
      int32_t spine = kRoot;
      while (tree.depth(spine) < tree.depth(node)) spine = tree.first_child(spine);
      const Weights left = difference(p, weights_of(*tree.distribution(spine)));
      if (!left.empty()) p = left;
    }
    return pick(p);
  }

  double uniform() { return std::uniform_real_distribution<double>()(random_); }

  TokenId pick(const Weights& p) {
    double rest = uniform();
    for (const auto& [token, weight] : p) {
      rest -= weight;
      if (rest < 0) return token;
    }
    return p.rbegin()->first;
  }

  const VerifyInput& input_;
  Fault fault_;
  std::mt19937_64 random_;
};

Verifier reference_match(Fault fault) {
  return [fault](const VerifyInput& input, SamplerScratch&, Verdict& verdict) {
    ReferenceWalk(input, fault)
        .run(verdict, [](ReferenceWalk& walk, int32_t node, const Distribution& p) {
          return walk.match(node, p);
        });
  };
}

Verifier reference_rejection(Fault fault) {
  return [fault](const VerifyInput& input, SamplerScratch&, Verdict& verdict) {
    ReferenceWalk(input, fault)
        .run(verdict, [](ReferenceWalk& walk, int32_t node, const Distribution& p) {
          return walk.reject(node, p);
        });
  };
}

// The fault, and nothing else, is what the statistic finds.
void expect_found(const std::function<Verifier(Fault)>& rule, Fault fault, Drafts drafts,
                  size_t option_set) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    World world(seed, 4, option_sets()[option_set], drafts);
    EXPECT_LT(deviation(world, rule(Fault::kNone)), 1);
    EXPECT_GT(deviation(world, rule(fault)), 1) << "world " << seed;
  }
}

TEST(WrongRule, RestsRedrawIsFound) {
  expect_found(reference_match, Fault::kRedraw, Drafts::kChosen, 0);
}

TEST(WrongRule, SwiftsPaddingIsFound) {
  expect_found(reference_rejection, Fault::kPadding, Drafts::kSpine, 0);
}

TEST(WrongRule, RawLogitBonusIsFound) {
  expect_found(reference_rejection, Fault::kRawBonus, Drafts::kSpine, 1);
  expect_found(reference_rejection, Fault::kRawBonus, Drafts::kSpine, 2);
}

TEST(WrongRule, SharedNoiseIsFound) {
  expect_found(reference_rejection, Fault::kSharedNoise, Drafts::kDrawn, 0);
}

// The condition of the rules that look at the draft's distribution: what they are offered
// must not depend on how the draw turned out. The other two do not care.
TEST(WrongDrafter, LeavingOutUnlikelyDrawsIsFound) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    World world(seed, 4, option_sets().front(), Drafts::kLikelyDrawn);
    EXPECT_LT(deviation(world, verifier_of(AcceptRule::kMatch)), 1);
    EXPECT_LT(deviation(world, verifier_of(AcceptRule::kTargetOnly)), 1);
    EXPECT_GT(deviation(world, verifier_of(AcceptRule::kLeviathan)), 1);
    EXPECT_GT(deviation(world, verifier_of(AcceptRule::kRejection)), 1);
  }
}

}  // namespace
}  // namespace forerun
