// The draw has the distribution's probabilities, and depends on nothing else than
// logits, options, seed and position. All seeds are fixed, so each test either always
// passes or never.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "sampling/sampler.h"
#include "support/plain_sampling.h"
#include "support/thorough.h"

namespace forerun {
namespace {

Sampler sampler_with_seed(uint64_t seed, int n_vocab) {
  return Sampler(test::plain_sampling(seed), n_vocab);
}

Distribution make_distribution(const std::vector<double>& probabilities) {
  Distribution d;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    d.tokens.push_back(TokenId{static_cast<int32_t>(i)});
    d.logprobs.push_back(static_cast<float>(std::log(probabilities[i])));
  }
  return d;
}

double chi_square(const std::vector<int>& counts, const std::vector<double>& probabilities) {
  const double n = std::accumulate(counts.begin(), counts.end(), 0);
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = n * probabilities[i];
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

// Four standard deviations above the mean of a chi-square variable.
double chi_square_bound(size_t n_cells) {
  const auto df = static_cast<double>(n_cells - 1);
  return df + 4 * std::sqrt(2 * df);
}

std::vector<std::vector<double>> test_distributions() {
  std::vector<std::vector<double>> out = {
      {0.5, 0.5}, {0.9, 0.09, 0.009, 0.001}, {0.02, 0.08, 0.2, 0.3, 0.4}};
  std::vector<double> geometric(600);
  for (size_t i = 0; i < geometric.size(); ++i) geometric[i] = std::pow(0.995, static_cast<double>(i));
  const double total = std::accumulate(geometric.begin(), geometric.end(), 0.0);
  for (double& p : geometric) p /= total;
  out.push_back(geometric);                                // spans several noise blocks, falling
  out.emplace_back(geometric.rbegin(), geometric.rend());  // and rising
  return out;
}

TEST(Draw, HasTheRightProbabilitiesAcrossPositionsAndAcrossSeeds) {
  constexpr int kDraws = test::thorough(40'000, 5'000);
  for (const auto& p : test_distributions()) {
    const Distribution d = make_distribution(p);
    std::vector<int> by_position(p.size());
    std::vector<int> by_seed(p.size());
    const Sampler sampler = sampler_with_seed(123, static_cast<int>(p.size()));
    for (int i = 0; i < kDraws; ++i) {
      ++by_position[static_cast<size_t>(to_int(sampler.draw(d, Position{i})))];
      const Sampler other = sampler_with_seed(static_cast<uint64_t>(i), static_cast<int>(p.size()));
      ++by_seed[static_cast<size_t>(to_int(other.draw(d, Position{50})))];
    }
    EXPECT_LT(chi_square(by_position, p), chi_square_bound(p.size()));
    EXPECT_LT(chi_square(by_seed, p), chi_square_bound(p.size()));
  }
}

// Successive draws are independent: the pairs have the product's probabilities.
TEST(Draw, NeighbouringPositionsAndSeedsAreIndependent) {
  constexpr int kDraws = test::thorough(100'000, 20'000);
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  const Distribution d = make_distribution(p);
  std::vector<double> product;
  for (double a : p) {
    for (double b : p) product.push_back(a * b);
  }
  std::vector<int> positions(16);
  std::vector<int> seeds(16);
  for (int i = 0; i < kDraws; ++i) {
    const auto at = [&](uint64_t seed, int position) {
      return static_cast<size_t>(to_int(sampler_with_seed(seed, 4).draw(d, Position{position})));
    };
    ++positions[at(9, 2 * i) * 4 + at(9, 2 * i + 1)];
    ++seeds[at(2 * static_cast<uint64_t>(i), 31) * 4 + at(2 * static_cast<uint64_t>(i) + 1, 31)];
  }
  EXPECT_LT(chi_square(positions, product), chi_square_bound(16));
  EXPECT_LT(chi_square(seeds, product), chi_square_bound(16));
}

// The whole path from logits, truncation and temperature included.
TEST(Draw, SampleFollowsTheTruncatedDistribution) {
  SamplingOptions options;  // the defaults
  options.seed = 77;
  const int n_vocab = 5'000;
  const Sampler sampler(options, n_vocab);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(n_vocab);
  for (float& x : logits) x = normal(random);
  SamplerScratch scratch;
  const Distribution d = sampler.distribution(logits, {}, scratch);
  ASSERT_GT(d.size(), 5u);
  std::vector<double> p;
  for (float logprob : d.logprobs) p.push_back(std::exp(static_cast<double>(logprob)));
  std::vector<int> counts(p.size());
  for (int i = 0; i < test::thorough(50'000, 5'000); ++i) {
    const TokenId token = sampler.sample(logits, {}, Position{i}, scratch);
    const auto it = std::find(d.tokens.begin(), d.tokens.end(), token);
    ASSERT_NE(it, d.tokens.end());
    ++counts[static_cast<size_t>(it - d.tokens.begin())];
  }
  EXPECT_LT(chi_square(counts, p), chi_square_bound(p.size()));
}

// The blocks that the draw skips never hold the best: compared with all scores.
TEST(Draw, EqualsTheDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::normal_distribution<float> normal(0, static_cast<float>(random() % 6));
    const size_t n = 1 + random() % 3'000;
    std::vector<float> logits(n);
    for (float& x : logits) x = normal(random);
    if (round % 3 == 1) std::sort(logits.begin(), logits.end());
    if (round % 3 == 2) std::sort(logits.rbegin(), logits.rend());
    const uint64_t seed = random();
    const Position position{static_cast<int32_t>(random() % 5'000)};
    const Sampler sampler = sampler_with_seed(seed, static_cast<int>(n));
    SamplerScratch scratch;
    const Distribution& d = sampler.distribution(logits, {}, scratch);
    size_t best = 0;
    double best_score = -1e300;
    for (size_t i = 0; i < d.size(); ++i) {
      const double score = static_cast<double>(d.logprobs[i]) +
                           KeyedNoise::gumbel(KeyedNoise(seed).bits(position, d.tokens[i]));
      if (score > best_score) best = i, best_score = score;
    }
    ASSERT_EQ(sampler.draw(d, position), d.tokens[best]);
  }
}

TEST(Draw, DoesNotDependOnTheOrderOfCandidates) {
  std::mt19937 random(6);
  constexpr size_t kCandidates = 700;
  Distribution d = make_distribution(std::vector<double>(kCandidates, 1.0 / kCandidates));
  for (size_t i = 0; i < kCandidates; ++i) d.logprobs[i] -= static_cast<float>(random() % 50) / 10;
  std::vector<size_t> order(kCandidates);
  std::iota(order.begin(), order.end(), size_t{0});
  const Sampler sampler = sampler_with_seed(8, kCandidates);
  for (int i = 0; i < 300; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    Distribution shuffled;
    for (size_t j : order) {
      shuffled.tokens.push_back(d.tokens[j]);
      shuffled.logprobs.push_back(d.logprobs[j]);
    }
    ASSERT_EQ(sampler.draw(shuffled, Position{i}), sampler.draw(d, Position{i}));
  }
}

// Why a sampling drafter shares the noise: distributions that nearly agree nearly
// always draw the same token. With independent noise the chance would be sum p^2.
TEST(Draw, SimilarDistributionsDrawTheSameToken) {
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  const std::vector<double> q = {0.12, 0.2, 0.28, 0.4};
  const Sampler sampler = sampler_with_seed(4, 4);
  int n_equal = 0;
  for (int i = 0; i < 10'000; ++i) {
    n_equal += sampler.draw(make_distribution(p), Position{i}) ==
               sampler.draw(make_distribution(q), Position{i});
  }
  EXPECT_GT(n_equal, 9'500);
}

// Golden text: the same on every machine, compiler and instruction set.
TEST(Draw, GivesTheSameTextEverywhere) {
  std::vector<float> logits(1'000);
  uint32_t state = 1;
  for (float& x : logits) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-21f;  // 0 to 8
  }
  const Sampler sampler = sampler_with_seed(2024, 1'000);
  SamplerScratch scratch;
  std::vector<int> text;
  for (int i = 0; i < 12; ++i) text.push_back(to_int(sampler.sample(logits, {}, Position{i}, scratch)));
  EXPECT_EQ(text, (std::vector<int>{309, 180, 895, 726, 284, 816, 552, 73, 461, 243, 252, 768}));
}

}  // namespace
}  // namespace forerun
