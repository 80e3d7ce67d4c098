#include "verify/token_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace forerun {
namespace {

using Shares = std::map<int, double>;

Distribution distribution_of(const Shares& shares, std::mt19937& random) {
  std::vector<std::pair<int, double>> order(shares.begin(), shares.end());
  std::shuffle(order.begin(), order.end(), random);
  Distribution out;
  for (const auto& [token, share] : order) {
    out.tokens.push_back(TokenId{token});
    out.logprobs.push_back(static_cast<float>(std::log(share)));
  }
  return out;
}

void normalise(Shares& shares) {
  double total = 0;
  for (const auto& [token, share] : shares) total += share;
  for (auto& [token, share] : shares) share /= total;
}

Shares random_shares(std::mt19937& random) {
  Shares out;
  const size_t n = 1 + random() % 6;
  while (out.size() < n)
    out[static_cast<int>(random() % 12)] = 0.01 + static_cast<double>(random() % 100);
  normalise(out);
  return out;
}

void expect_shares(const TokenWeights& weights, const Shares& expected) {
  for (int token = 0; token < 12; ++token) {
    const auto it = expected.find(token);
    ASSERT_NEAR(weights.share(TokenId{token}), it == expected.end() ? 0 : it->second, 1e-5) << token;
  }
}

TEST(TokenWeights, RemovesAndSubtractsAsDefined) {
  std::mt19937 random(1);
  for (int round = 0; round < 3'000; ++round) {
    Shares p = random_shares(random);
    Shares q = random_shares(random);
    TokenWeights a;
    TokenWeights b;
    a.assign(distribution_of(p, random));
    b.assign(distribution_of(q, random));
    expect_shares(a, p);

    const int removed = q.begin()->first;
    if (q.size() > 1) {
      q.erase(removed);
      normalise(q);
      b.remove(TokenId{removed});
      expect_shares(b, q);
    }
    double left = 0;
    for (auto& [token, share] : p) {
      share = std::max(share - (q.contains(token) ? q.at(token) : 0.0), 0.0);
      left += share;
    }
    if (left < 0.01) continue;  // rounding decides
    normalise(p);
    a.subtract(b);
    expect_shares(a, p);
  }
}

TEST(TokenWeights, AtInvertsTheRunningSum) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const Shares p = random_shares(random);
    TokenWeights weights;
    weights.assign(distribution_of(p, random));
    double before = 0;
    for (const auto& [token, share] : p) {
      EXPECT_EQ(weights.at(before + 0.01 * share), TokenId{token});
      EXPECT_EQ(weights.at(before + 0.99 * share), TokenId{token});
      before += share;
    }
    EXPECT_EQ(weights.at(0), TokenId{p.begin()->first});
    EXPECT_EQ(weights.at(1), TokenId{p.rbegin()->first});
  }
}

TEST(TokenWeights, AtSkipsWhatHasNoWeight) {
  std::mt19937 random(3);
  TokenWeights weights;
  weights.assign(distribution_of({{1, 0.25}, {2, 0.5}, {3, 0.25}}, random));
  weights.remove(TokenId{1});
  weights.remove(TokenId{3});
  weights.remove(TokenId{7});  // not there
  EXPECT_EQ(weights.share(TokenId{2}), 1.0);
  EXPECT_EQ(weights.at(0), TokenId{2});
  EXPECT_EQ(weights.at(1), TokenId{2});
}

TEST(TokenWeights, KeepsWhatNothingWouldBeLeftOf) {
  std::mt19937 random(4);
  TokenWeights a;
  a.assign(distribution_of({{1, 0.25}, {2, 0.75}}, random));
  const TokenWeights same = a;
  a.subtract(same);
  EXPECT_NEAR(a.share(TokenId{2}), 0.75, 1e-6);
}

TEST(TokenWeights, OfNothingAreZero) {
  TokenWeights weights;
  weights.assign({});
  EXPECT_EQ(weights.share(TokenId{0}), 0.0);
}

}  // namespace
}  // namespace forerun
