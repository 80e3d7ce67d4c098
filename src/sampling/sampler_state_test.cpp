#include "sampling/sampler_state.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace forerun {
namespace {

std::vector<TokenId> window_of(const SamplerState& state) {
  std::vector<TokenId> tokens;
  state.for_each([&](TokenId token) { tokens.push_back(token); });
  EXPECT_EQ(static_cast<int64_t>(tokens.size()), state.size());
  return tokens;
}

// The last `window` tokens of `text`, latest first.
std::vector<TokenId> expected(const std::vector<TokenId>& text, int window) {
  std::vector<TokenId> latest(text.rbegin(), text.rend());
  if (window >= 0 && latest.size() > static_cast<size_t>(window))
    latest.resize(static_cast<size_t>(window));
  return latest;
}

std::vector<TokenId> numbered(int n) {
  std::vector<TokenId> text;
  for (int i = 0; i < n; ++i) text.push_back(TokenId{i});
  return text;
}

TEST(SamplerState, HoldsTheLastTokensOfAnyWindow) {
  for (int window : {-1, 0, 1, 2, 63, 64, 65, 100, 127, 128, 129, 500}) {
    SamplerState state(window);
    std::vector<TokenId> text;
    for (int i = 0; i < 700; ++i) {
      ASSERT_EQ(window_of(state), expected(text, window)) << "window " << window << " length " << i;
      state.accept(TokenId{i});
      text.push_back(TokenId{i});
    }
  }
}

TEST(SamplerState, StartingWithATextEqualsAcceptingIt) {
  for (int window : {-1, 0, 1, 64, 65, 100, 200}) {
    for (int n : {0, 1, 63, 64, 65, 127, 128, 190, 1000}) {
      std::vector<TokenId> text = numbered(n);
      SamplerState state(window, text);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(window_of(state), expected(text, window)) << window << ' ' << n << ' ' << i;
        state.accept(TokenId{1000 + i});
        text.push_back(TokenId{1000 + i});
      }
    }
  }
}

TEST(SamplerState, RemembersNothingByDefault) {
  SamplerState state;
  state.accept(TokenId{3});
  EXPECT_TRUE(window_of(state).empty());
}

// Branches of a random tree, each checked against its own path, parents outliving
// children and the other way round.
TEST(SamplerState, CopiesAreIndependentBranches) {
  struct Branch {
    SamplerState state;
    std::vector<TokenId> text;
  };
  for (int window : {10, 64, 150, -1}) {
    std::mt19937 random(4);
    std::vector<Branch> branches{{SamplerState(window), {}}};
    for (int step = 0; step < 5'000; ++step) {
      const size_t i = random() % branches.size();
      const auto action = random() % 40;
      if (action == 0 && branches.size() < 20) {
        branches.push_back(Branch(branches[i]));
      } else if (action == 1 && branches.size() > 1) {
        branches.erase(branches.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        const TokenId token{static_cast<int32_t>(random() % 1000)};
        branches[i].state.accept(token);
        branches[i].text.push_back(token);
      }
      if (step % 100 == 0) {
        for (const Branch& b : branches) ASSERT_EQ(window_of(b.state), expected(b.text, window));
      }
    }
  }
}

TEST(SamplerState, IsSmall) {
  EXPECT_LE(sizeof(SamplerState), 320u);
}

}  // namespace
}  // namespace forerun
