#include "tune/disco/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.h"

namespace forerun {
namespace {

double true_chance(const DiscoFeatures& features) {
  // Not linear: taken where the likeliest is sure, or where the second is near it.
  const double logit = 6 * std::abs(static_cast<double>(features[0]) - 0.5) - 1.5;
  return 1 / (1 + std::exp(-logit));
}

std::vector<DiscoExample> examples_of(size_t n, uint64_t seed, bool hard) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::vector<DiscoExample> examples(n);
  for (DiscoExample& example : examples) {
    for (float& x : example.features) x = static_cast<float>(uniform(random));
    const double chance = true_chance(example.features);
    example.taken = static_cast<float>(hard ? (uniform(random) < chance ? 1 : 0) : chance);
  }
  return examples;
}

double mean_error(const DiscoNetwork& network, const std::vector<DiscoExample>& examples) {
  double sum = 0;
  for (const DiscoExample& example : examples) {
    sum += std::abs(network.chance(example.features) - true_chance(example.features));
  }
  return sum / static_cast<double>(examples.size());
}

TEST(Training, LearnsChancesThatAreNotLinear) {
  const auto held_out = examples_of(1000, 2, true);
  for (const bool hard : {true, false}) {
    double share = 0;
    DiscoTrainingOptions options;
    options.progress = [&](double now, double loss) {
      EXPECT_GT(now, share);
      EXPECT_TRUE(std::isfinite(loss));
      share = now;
    };
    const DiscoNetwork network = train_disco(examples_of(6000, 1, hard), held_out, options);
    EXPECT_DOUBLE_EQ(share, 1);
    EXPECT_LT(mean_error(network, held_out), hard ? 0.08 : 0.04);
    // Better than the share that is taken, which knows nothing.
    DiscoNetwork knows_nothing = network;
    std::ranges::fill(knows_nothing.output_weight, 0.0f);
    knows_nothing.output_bias = 0.2f;
    EXPECT_LT(cross_entropy(network, held_out), cross_entropy(knows_nothing, held_out) - 0.05);
  }
}

TEST(Training, IsTheSameForTheSameSeed) {
  const auto examples = examples_of(300, 1, true);
  const auto held_out = examples_of(100, 2, true);
  DiscoTrainingOptions options{.n_epochs = 3};
  const DiscoNetwork first = train_disco(examples, held_out, options);
  EXPECT_EQ(train_disco(examples, held_out, options).hidden_weight, first.hidden_weight);
  options.seed = 2;
  EXPECT_NE(train_disco(examples, held_out, options).hidden_weight, first.hidden_weight);
}

TEST(Training, AFeatureThatIsAlwaysTheSameDoesNoHarm) {
  auto examples = examples_of(600, 1, false);
  for (DiscoExample& example : examples) example.features[5] = 0.25f;
  const DiscoNetwork network = train_disco(examples, examples, {.n_epochs = 5});
  DiscoFeatures other = examples.front().features;
  other[5] = 1e9f;
  EXPECT_EQ(network.chance(other), network.chance(examples.front().features));
}

TEST(Training, TooFewExamplesAreAnError) {
  const auto examples = examples_of(20, 1, true);
  EXPECT_THROW(train_disco(examples, examples), Error);
  EXPECT_THROW(train_disco(examples_of(100, 1, true), {}), Error);
}

}  // namespace
}  // namespace forerun
