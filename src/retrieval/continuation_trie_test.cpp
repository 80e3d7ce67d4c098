#include "retrieval/continuation_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/test_tokens.h"

namespace forerun {
namespace {

void expect_equal_below(const ContinuationTrie& trie, uint64_t handle, const Tokens& path,
                        const std::map<Tokens, float>& weights, const std::map<Tokens, int>& matches) {
  std::vector<Candidate> children;
  trie.children(handle, children);
  size_t n_expected = 0;
  for (const auto& [tokens, weight] : weights) {
    if (tokens.size() == path.size() + 1 && std::equal(path.begin(), path.end(), tokens.begin()))
      ++n_expected;
  }
  ASSERT_EQ(children.size(), n_expected);
  int last_match = INT32_MAX;
  for (const Candidate& child : children) {
    Tokens longer = path;
    longer.push_back(child.token);
    ASSERT_TRUE(weights.contains(longer));
    EXPECT_FLOAT_EQ(child.share, weights.at(longer) / weights.at(path));
    EXPECT_EQ(child.match_length, matches.at(longer));
    EXPECT_LE(child.match_length, last_match);  // longer matches come first
    last_match = child.match_length;
    expect_equal_below(trie, child.handle, longer, weights, matches);
  }
}

TEST(ContinuationTrie, EqualsBruteForce) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  ContinuationTrie trie;
  for (int round = 0; round < 200; ++round) {
    trie.clear();
    std::map<Tokens, float> weights{{{}, 0.0f}};
    std::map<Tokens, int> matches;
    const int n_letters = pick(1, 300);
    const int n_inserts = round == 0 ? 20000 : pick(0, 100);
    for (int match_length = 4; match_length > 0; --match_length) {
      for (int i = 0; i < n_inserts / 4; ++i) {
        Tokens continuation;
        for (int length = pick(0, 6); length > 0; --length)
          continuation.push_back(TokenId{pick(0, n_letters)});
        const float weight = round % 2 == 0 ? 1.0f : static_cast<float>(pick(1, 8)) / 8.0f;
        trie.insert(continuation, match_length, weight);
        for (size_t length = 0; length <= continuation.size(); ++length) {
          const Tokens prefix(continuation.begin(),
                              continuation.begin() + static_cast<ptrdiff_t>(length));
          weights[prefix] += weight;
          matches.try_emplace(prefix, match_length);
        }
      }
    }
    EXPECT_FLOAT_EQ(trie.weight(), weights.at({}));
    EXPECT_EQ(trie.n_nodes() + 1, static_cast<int>(weights.size()));
    if (round > 0) expect_equal_below(trie, ContinuationTrie::kRootHandle, {}, weights, matches);
  }
}

}  // namespace
}  // namespace forerun
