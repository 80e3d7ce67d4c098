// Under kMatch the text is plain decoding's, token for token, whatever was drafted; and
// the verdict is the longest part of that text that the tree holds.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "verify/hashed_model.h"

namespace forerun {
namespace {

constexpr int kVocab = 40;
constexpr int kTokens = 90;  // past the 64 tokens that a sampler's state keeps inside

std::vector<SamplingOptions> sampling_of_all_kinds() {
  std::vector<SamplingOptions> sets(10);
  sets[1].temperature = 0;
  sets[2].temperature = 0;
  sets[2].repeat_penalty = 1.5f;
  sets[3].repeat_penalty = 1.3f;
  sets[3].repeat_last_n = -1;
  sets[4].presence_penalty = 0.7f;
  sets[4].frequency_penalty = 0.4f;
  sets[4].repeat_last_n = 5;
  sets[5].temperature = 1.4f;
  sets[5].top_k = 0;
  sets[5].top_p = 1;
  sets[5].min_p = 0;
  sets[6].top_k = 0;
  sets[6].min_p = 0;
  sets[6].top_p = 0.7f;
  sets[7].top_k = 0;
  sets[7].top_p = 1;
  sets[7].min_p = 0.2f;
  sets[8].top_k = 1;
  sets[8].frequency_penalty = 2;
  sets[9].logit_bias = {{TokenId{3}, -std::numeric_limits<float>::infinity()}, {TokenId{5}, 2.0f}};
  sets[9].temperature = 2;
  return sets;
}

// Up to 12 nodes anywhere below each other. About half of those whose parent lies on the
// text that is to come continue it; the others hold any token.
DraftTree random_tree(const Text& plain, size_t n_before, std::mt19937& random) {
  DraftTree tree;
  std::vector<int32_t> on_text = {kRoot};  // nodes that continue the text, by depth
  const size_t n_nodes = random() % 13;
  for (size_t i = 0; i < n_nodes; ++i) {
    const bool go_on = random() % 2 == 0 && n_before + on_text.size() <= plain.size();
    const int32_t parent = go_on ? on_text.back() : static_cast<int32_t>(random() % (i + 1)) - 1;
    const TokenId token =
        go_on ? plain[n_before + on_text.size() - 1] : TokenId{static_cast<int32_t>(random() % kVocab)};
    if (parent >= tree.size() || tree.find_child(parent, token)) continue;
    const int32_t node = tree.add({.token = token, .parent = parent});
    if (go_on) on_text.push_back(node);
  }
  return tree;
}

// Walks the tree along the plain text, and nothing else.
Verdict expected_verdict(const Text& plain, size_t n_before, const DraftTree& tree) {
  Verdict verdict;
  int32_t node = kRoot;
  for (size_t i = n_before;; ++i) {
    verdict.next = plain[i];
    for (int32_t other = 0; other < tree.size(); ++other) {
      if (tree[other].parent == node) verdict.tested.push_back(other);
    }
    const auto child = tree.find_child(node, plain[i]);
    if (!child) return verdict;
    verdict.path.push_back(*child);
    node = *child;
  }
}

TEST(Match, GivesThePlainTextWhateverIsDrafted) {
  std::mt19937 random(1);
  const Text prompt = {TokenId{1}, TokenId{2}, TokenId{1}};
  size_t n_accepted = 0;
  size_t n_refused = 0;
  for (SamplingOptions options : sampling_of_all_kinds()) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      options.seed = seed;
      const Sampler sampler(options, kVocab);
      const HashedModel model(seed, kVocab, 3.0f);
      const Text plain = plain_text(model, sampler, prompt, kTokens + 15);
      Text text = prompt;
      while (text.size() < kTokens) {
        const DraftTree tree = random_tree(plain, text.size(), random);
        const Verdict verdict =
            verify_draft(model, sampler, text, tree, verifier_of(AcceptRule::kMatch));
        const Verdict expected = expected_verdict(plain, text.size(), tree);
        ASSERT_EQ(verdict.path, expected.path);
        ASSERT_EQ(verdict.next, expected.next);
        ASSERT_EQ(verdict.tested, expected.tested);
        n_accepted += verdict.path.size();
        n_refused += verdict.tested.size() - verdict.path.size();
        append(tree, verdict, text);
        ASSERT_TRUE(std::equal(text.begin(), text.end(), plain.begin()));
      }
    }
  }
  EXPECT_GT(n_accepted, 3'000u);
  EXPECT_GT(n_refused, 3'000u);
}

// The verdict's memory is reused, and nothing of the last one is left.
TEST(Match, OverwritesTheVerdict) {
  SamplingOptions options;
  options.temperature = 0;
  const Sampler sampler(options, 3);
  const std::vector<float> logits = {0, 1, 0};
  DraftTree tree;
  const SamplerState state;
  const VerifyInput input{tree, [&](int32_t) { return std::span(logits); }, sampler, state, Position{0}};
  SamplerScratch scratch;
  Verdict verdict;
  const int32_t a = tree.add({.token = TokenId{1}});
  const int32_t b = tree.add({.token = TokenId{1}, .parent = a});
  verify(input, AcceptRule::kMatch, scratch, verdict);
  EXPECT_EQ(verdict.path, (std::vector<int32_t>{a, b}));
  EXPECT_EQ(verdict.tested.size(), 2u);
  tree.clear();
  verify(input, AcceptRule::kMatch, scratch, verdict);
  EXPECT_EQ(verdict.path, std::vector<int32_t>{});
  EXPECT_TRUE(verdict.tested.empty());
  EXPECT_EQ(verdict.next, TokenId{1});
}

}  // namespace
}  // namespace forerun
