#include "sampling/keyed_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "sampling/ieee_math.h"

namespace forerun {
namespace {

using Words = std::array<uint32_t, 2>;

// Published with the reference implementation (Random123, threefry2x32, 20 rounds).
TEST(Threefry, KnownAnswers) {
  EXPECT_EQ(threefry2x32({0, 0}, {0, 0}), (Words{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry2x32({~0u, ~0u}, {~0u, ~0u}), (Words{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry2x32({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}),
            (Words{0xc4923a9c, 0x483df7a0}));
}

TEST(KeyedNoise, FillEqualsBitsForAnyTokensAndCount) {
  const KeyedNoise noise(0x0123456789abcdefu);
  std::mt19937 random(1);
  for (size_t n = 0; n <= KeyedNoise::kBlock; n += n < 40 ? 1 : 27) {
    std::vector<TokenId> tokens(n);
    for (TokenId& t : tokens) t = TokenId{static_cast<int32_t>(random() % 262144)};
    KeyedNoise::Block block;
    const uint32_t max = noise.fill(Position{77}, tokens, block);
    uint32_t expected_max = 0;
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(uint64_t{block.high[i]} << 32 | block.low[i], noise.bits(Position{77}, tokens[i]));
      expected_max = std::max(expected_max, block.high[i]);
    }
    EXPECT_EQ(max, expected_max);
  }
}

TEST(KeyedNoise, EveryPartOfTheKeyMatters) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (int position = 0; position < 20; ++position) {
      for (int token = 0; token < 20; ++token) {
        seen.insert(KeyedNoise(seed).bits(Position{position}, TokenId{token}));
      }
    }
  }
  EXPECT_EQ(seen.size(), 4u * 20u * 20u);
}

// Golden values: the same on every machine, compiler and instruction set.
TEST(KeyedNoise, GumbelHasTheSameBitsEverywhere) {
  uint64_t hash = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double g = KeyedNoise::gumbel(KeyedNoise(42).bits(Position{i}, TokenId{i * 7}));
    uint64_t bits;
    std::memcpy(&bits, &g, sizeof(bits));
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
  }
  EXPECT_EQ(hash, 0x759A7CA9629C73DCu);
}

TEST(KeyedNoise, GumbelIsFiniteAtTheEndsAndGrows) {
  EXPECT_NEAR(KeyedNoise::gumbel(0), -std::log(53 * std::log(2.0)), 1e-12);
  EXPECT_NEAR(KeyedNoise::gumbel(~uint64_t{0}), 53 * std::log(2.0), 1e-12);
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t a = random() >> (i % 64);
    const uint64_t b = a + std::min(random() >> (i % 61), ~uint64_t{0} - a);
    EXPECT_LE(KeyedNoise::gumbel(a), KeyedNoise::gumbel(b) + KeyedNoise::kGumbelSlack);
    EXPECT_LE(KeyedNoise::gumbel(~b), KeyedNoise::gumbel(~a) + KeyedNoise::kGumbelSlack);
  }
}

// Uniformity of u = exp(-exp(-gumbel)) along each part of the key: chi-square over 256
// cells has mean 255 and standard deviation 22.6; 360 is 4.6 of them.
TEST(KeyedNoise, UniformAlongTokensPositionsAndSeeds) {
  constexpr int kDraws = 200'000;
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<int> cells(256);
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) {
      const KeyedNoise noise(axis == 0 ? static_cast<uint64_t>(i) : 5);
      const double g =
          KeyedNoise::gumbel(noise.bits(Position{axis == 1 ? i : 9}, TokenId{axis == 2 ? i : 3}));
      sum += g;
      ++cells[static_cast<size_t>(std::exp(-std::exp(-g)) * 256)];
    }
    double chi2 = 0;
    for (int n : cells) chi2 += (n - kDraws / 256.0) * (n - kDraws / 256.0) / (kDraws / 256.0);
    EXPECT_LT(chi2, 360) << "axis " << axis;
    // Mean: Euler's constant; standard error 1.2825 / sqrt(kDraws) = 0.0029.
    EXPECT_NEAR(sum / kDraws, 0.5772157, 0.0115) << "axis " << axis;
  }
}

// Correlation of the noise of neighbours in each direction, and of distant keys: its
// standard error is 1 / sqrt(kDraws) = 0.0022; the bound is four of them.
TEST(KeyedNoise, NeighboursAreUncorrelated) {
  struct Step {
    uint64_t seed;
    int position;
    int token;
  };
  constexpr int kDraws = 200'000;
  for (const Step& step : {Step{1, 0, 0}, Step{0, 1, 0}, Step{0, 0, 1}, Step{0, 1, -1}, Step{1, 1, 1},
                           Step{uint64_t{1} << 32, 0, 0}, Step{0, 0, 256}, Step{0, 4096, 0}}) {
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t seed = static_cast<uint64_t>(i % 7);
      const int position = i / 7 % 200;
      const int token = i / 1400 * 3 + 1;
      const double a = KeyedNoise::gumbel(KeyedNoise(seed).bits(Position{position}, TokenId{token}));
      const double b =
          KeyedNoise::gumbel(KeyedNoise(seed + step.seed)
                                 .bits(Position{position + step.position}, TokenId{token + step.token}));
      x += a, y += b, xx += a * a, yy += b * b, xy += a * b;
    }
    const double n = kDraws;
    const double r = (n * xy - x * y) / std::sqrt((n * xx - x * x) * (n * yy - y * y));
    EXPECT_LT(std::abs(r), 0.009) << step.seed << ' ' << step.position << ' ' << step.token;
  }
}

// Each of the 64 bits is set half the time, and flipping any input bit flips half of
// the output bits on average (standard error 0.0028).
TEST(KeyedNoise, BitsAreBalancedAndAvalanche) {
  constexpr int kDraws = 32'000;
  std::vector<int> set(64);
  double flips[3] = {};
  for (int i = 0; i < kDraws; ++i) {
    const int flip = 1 << (i % 31);
    const uint64_t bits = KeyedNoise(11).bits(Position{i}, TokenId{2 * i});
    for (int b = 0; b < 64; ++b) set[static_cast<size_t>(b)] += static_cast<int>(bits >> b & 1);
    flips[0] +=
        std::popcount(bits ^ KeyedNoise(11 ^ uint64_t{1} << (i % 64)).bits(Position{i}, TokenId{2 * i}));
    flips[1] += std::popcount(bits ^ KeyedNoise(11).bits(Position{i ^ flip}, TokenId{2 * i}));
    flips[2] += std::popcount(bits ^ KeyedNoise(11).bits(Position{i}, TokenId{2 * i ^ flip}));
  }
  for (int n : set) EXPECT_NEAR(n, kDraws / 2, 4 * std::sqrt(kDraws) / 2);
  for (double f : flips) EXPECT_NEAR(f / kDraws, 32, 4 * 4 / std::sqrt(kDraws));
}

TEST(IeeeMath, LogIsAccurate) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-60, 60);
  for (int i = 0; i < 200'000; ++i) {
    const double x =
        i % 2 == 0 ? std::exp2(exponent(random)) : 1 + std::exp2(-std::abs(exponent(random)) - 1);
    const double expected = std::log(x);
    EXPECT_NEAR(ieee::log(x), expected, 4 * 2.3e-16 * std::abs(expected)) << x;
  }
  EXPECT_EQ(ieee::log(1.0), 0.0);
}

TEST(IeeeMath, ExpIsAccurate) {
  for (double x = 0; x > -87; x -= 0.000937) {
    const auto xf = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(xf));
    EXPECT_NEAR(static_cast<double>(ieee::exp_nonpositive(xf)), expected, 2 * 6e-8 * expected) << x;
  }
  EXPECT_EQ(ieee::exp_nonpositive(0.0f), 1.0f);
  EXPECT_EQ(ieee::exp_nonpositive(-88.0f), 0.0f);
  EXPECT_EQ(ieee::exp_nonpositive(-std::numeric_limits<float>::infinity()), 0.0f);
}

}  // namespace
}  // namespace forerun
