// What every rule has in common, and the edges.

#include "verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "core/error.h"
#include "support/odd_floats.h"
#include "support/plain_sampling.h"
#include "verify/hashed_model.h"

namespace forerun {
namespace {

using test::plain_sampling;

// Probabilities of tokens 0, 1, ... as logits; 0 excludes a token.
std::vector<float> logits_of(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (double p : probabilities) out.push_back(p > 0 ? static_cast<float>(std::log(p)) : -kInf);
  return out;
}

Distribution distribution_of(std::initializer_list<double> probabilities) {
  Distribution out;
  int32_t token = 0;
  for (float logprob : logits_of(probabilities)) {
    if (logprob > -kInf) {
      out.tokens.push_back(TokenId{token});
      out.logprobs.push_back(logprob);
    }
    ++token;
  }
  return out;
}

// A model that says the same behind every text.
Verdict verify_with(AcceptRule rule, const DraftTree& tree, const std::vector<float>& logits,
                    const SamplingOptions& options) {
  const Sampler sampler(options, static_cast<int>(logits.size()));
  const SamplerState state = sampler.state_after({});
  SamplerScratch scratch;
  Verdict verdict;
  verify({tree, [&](int32_t) { return std::span(logits); }, sampler, state, Position{7}}, rule, scratch,
         verdict);
  return verdict;
}

TEST(AcceptRule, NamesRoundTrip) {
  for (AcceptRule rule : kAllRules) EXPECT_EQ(parse_accept_rule(to_string(rule)), rule);
  EXPECT_EQ(parse_accept_rule("target"), AcceptRule::kTargetOnly);
  EXPECT_EQ(parse_accept_rule(""), std::nullopt);
  EXPECT_EQ(parse_accept_rule("Match"), std::nullopt);
}

TEST(Verify, EmptyTreeGivesOneToken) {
  const auto logits = logits_of({0.2, 0.5, 0.3});
  for (AcceptRule rule : kAllRules) {
    std::set<TokenId> seen;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const Verdict verdict = verify_with(rule, {}, logits, plain_sampling(seed));
      EXPECT_TRUE(verdict.path.empty());
      EXPECT_EQ(verdict.tested.size(), 0u);
      seen.insert(verdict.next);
    }
    EXPECT_EQ(seen.size(), 3u);
  }
}

// Children that the model excludes are refused, with a distribution and without.
TEST(Verify, NeverAcceptsWhatTheModelExcludes) {
  const auto logits = logits_of({0, 0.4, 0, 0.6});
  DraftTree chosen;
  chosen.add({.token = TokenId{0}});
  chosen.add({.token = TokenId{2}});
  DraftTree drawn = chosen;
  drawn.set_distribution(kRoot, distribution_of({0.5, 0.1, 0.4, 0}));
  DraftTree only_excluded = chosen;
  only_excluded.set_distribution(kRoot, distribution_of({0.5, 0, 0.5, 0}));
  for (AcceptRule rule : kAllRules) {
    for (const DraftTree* tree : {&chosen, &drawn, &only_excluded}) {
      std::set<TokenId> seen;
      for (uint64_t seed = 0; seed < 200; ++seed) {
        const Verdict verdict = verify_with(rule, *tree, logits, plain_sampling(seed));
        EXPECT_TRUE(verdict.path.empty());
        EXPECT_EQ(verdict.tested.size(), 2u);
        seen.insert(verdict.next);
      }
      EXPECT_EQ(seen, (std::set<TokenId>{TokenId{1}, TokenId{3}}));
    }
  }
}

// One candidate is left: whoever drafted what, it is the token.
TEST(Verify, GreedyTextIsTheSameUnderEveryRule) {
  const int n_vocab = 5;
  std::mt19937 random(3);
  SamplingOptions options;
  options.temperature = 0;
  options.repeat_penalty = 1.4f;
  const Sampler draft_sampler(plain_sampling(1), n_vocab);
  for (AcceptRule rule : kAllRules) {
    size_t n_accepted = 0;
    for (uint64_t seed = 0; seed < 30; ++seed) {
      options.seed = seed;
      const Sampler sampler(options, n_vocab);
      const HashedModel model(seed, n_vocab, 3.0f);
      const Text plain = plain_text(model, sampler, {}, 50);
      Text text;
      while (text.size() < 30) {
        DraftTree tree;
        for (int i = 0; i < 12; ++i) {
          const int32_t parent = static_cast<int32_t>(random() % static_cast<size_t>(i + 1)) - 1;
          const TokenId token{static_cast<int32_t>(random() % n_vocab)};
          if (parent < tree.size() && !tree.find_child(parent, token))
            tree.add({.token = token, .parent = parent});
        }
        for (int32_t node = kRoot; node < tree.size(); ++node) {
          if (random() % 2 == 0) continue;
          tree.set_distribution(
              node, distribution_behind(model, draft_sampler, text_behind(text, tree, node)));
        }
        const Verdict verdict = verify_draft(model, sampler, text, tree, verifier_of(rule));
        n_accepted += verdict.path.size();
        append(tree, verdict, text);
      }
      ASSERT_TRUE(std::equal(text.begin(), text.end(), plain.begin())) << to_string(rule);
    }
    EXPECT_GT(n_accepted, 100u);
  }
}

// All the model's candidates are children: one of them is accepted, whatever the rounding.
TEST(Verify, AcceptsSomeChildWhenTheyAreAllThereIs) {
  const auto logits = logits_of({0.2, 0.5, 0.3});
  DraftTree tree;
  for (int32_t token : {2, 0, 1}) tree.add({.token = TokenId{token}});
  for (AcceptRule rule : kAllRules) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const Verdict verdict = verify_with(rule, tree, logits, plain_sampling(seed));
      EXPECT_EQ(verdict.path.size(), 1u);
      EXPECT_EQ(verdict.tested.size(), 3u);
    }
  }
}

// A draft drawn from the model's own distribution is always accepted by the rules that
// know it, and what the model never says is never drawn instead.
TEST(Verify, AcceptsADrawFromTheModelItself) {
  const auto logits = logits_of({0.2, 0.5, 0.3});
  for (AcceptRule rule : {AcceptRule::kLeviathan, AcceptRule::kRejection}) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      DraftTree tree;
      tree.add({.token = TokenId{static_cast<int32_t>(seed % 3)}});
      tree.set_distribution(kRoot, distribution_of({0.2, 0.5, 0.3}));
      EXPECT_EQ(verify_with(rule, tree, logits, plain_sampling(seed)).path.size(), 1u);
    }
  }
}

// A child outside its node's distribution was chosen: accepted as often as the model says
// it, not always.
TEST(Verify, TreatsAChildOutsideTheDistributionAsChosen) {
  const auto logits = logits_of({0.3, 0.7});
  DraftTree tree;
  tree.add({.token = TokenId{0}});
  tree.set_distribution(kRoot, distribution_of({0, 1.0}));
  for (AcceptRule rule : {AcceptRule::kLeviathan, AcceptRule::kRejection}) {
    int n_accepted = 0;
    for (uint64_t seed = 0; seed < 10'000; ++seed)
      n_accepted += static_cast<int>(verify_with(rule, tree, logits, plain_sampling(seed)).path.size());
    EXPECT_NEAR(n_accepted, 3'000, 5 * std::sqrt(10'000 * 0.3 * 0.7));
  }
}

// kLeviathan tries the first child alone, but does not stop where the token it draws
// instead is another child.
TEST(Verify, FollowsAChildThatWasNotTried) {
  const auto logits = logits_of({0, 1.0});
  DraftTree tree;
  tree.add({.token = TokenId{0}});
  const int32_t second = tree.add({.token = TokenId{1}});
  const Verdict verdict = verify_with(AcceptRule::kLeviathan, tree, logits, plain_sampling(1));
  EXPECT_EQ(verdict.path, std::vector<int32_t>{second});
  EXPECT_EQ(verdict.next, TokenId{1});
  EXPECT_EQ(verdict.tested.size(), 2u);
}

// The shares of accepted first tokens, from the definitions: two children drawn without
// replacement. That the text keeps its distribution does not show them.
TEST(Verify, AcceptsAsOftenAsTheRulesSay) {
  constexpr double p[] = {0.2, 0.5, 0.3};
  constexpr double q[] = {0.6, 0.3, 0.1};
  constexpr int kDrafts = 20'000;
  const auto logits = logits_of({p[0], p[1], p[2]});
  std::map<AcceptRule, double> expected;
  std::map<AcceptRule, int> accepted;
  for (int first = 0; first < 3; ++first) {
    double left_total = 0;
    for (int token = 0; token < 3; ++token) left_total += std::max(p[token] - q[token], 0.0);
    for (int second = 0; second < 3; ++second) {
      if (second == first) continue;
      const double second_drawn = q[second] / (1 - q[first]);
      const double chance = q[first] * second_drawn;
      const double tried = std::min(1.0, p[first] / q[first]);
      const double left = std::max(p[second] - q[second], 0.0) / left_total;
      const std::map<AcceptRule, double> share = {
          {AcceptRule::kMatch, p[first] + p[second]},
          {AcceptRule::kTargetOnly, p[first] + p[second]},
          {AcceptRule::kLeviathan, tried + (1 - tried) * left},
          {AcceptRule::kRejection, tried + (1 - tried) * std::min(1.0, left / second_drawn)}};
      for (AcceptRule rule : kAllRules) expected[rule] += kDrafts * chance * share.at(rule);
    }
  }
  std::mt19937 random(9);
  std::discrete_distribution<int> draw(std::begin(q), std::end(q));
  for (uint64_t seed = 0; seed < kDrafts; ++seed) {
    DraftTree tree;
    tree.add({.token = TokenId{draw(random)}});
    while (tree.size() < 2) {
      const TokenId second{draw(random)};
      if (second != tree[0].token) tree.add({.token = second});
    }
    tree.set_distribution(kRoot, distribution_of({q[0], q[1], q[2]}));
    for (AcceptRule rule : kAllRules)
      accepted[rule] +=
          static_cast<int>(verify_with(rule, tree, logits, plain_sampling(seed)).path.size());
  }
  for (AcceptRule rule : kAllRules)
    EXPECT_NEAR(accepted[rule], expected[rule], 5 * std::sqrt(kDrafts * 0.25)) << to_string(rule);
}

TEST(Verify, IsDeterministic) {
  const HashedModel model(5, 6, 2.0f);
  DraftTree tree;
  for (int32_t token = 0; token < 4; ++token) tree.add({.token = TokenId{token}});
  for (int32_t parent = 0; parent < 4; ++parent) tree.add({.token = TokenId{5}, .parent = parent});
  for (AcceptRule rule : kAllRules) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const Sampler sampler(plain_sampling(seed), 6);
      const Verdict a = verify_draft(model, sampler, {}, tree, verifier_of(rule));
      const Verdict b = verify_draft(model, sampler, {}, tree, verifier_of(rule));
      EXPECT_EQ(a.path, b.path);
      EXPECT_EQ(a.next, b.next);
    }
  }
}

TEST(Verify, ThrowsWhenNoTokenIsLeft) {
  const std::vector<float> logits(4, std::numeric_limits<float>::quiet_NaN());
  for (AcceptRule rule : kAllRules)
    EXPECT_THROW(verify_with(rule, {}, logits, plain_sampling(1)), Error);
}

}  // namespace
}  // namespace forerun
