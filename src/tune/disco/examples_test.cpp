#include "tune/disco/examples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"
#include "engine/stepper_fixture.h"
#include "support/plain_sampling.h"
#include "support/thorough.h"
#include "tune/answers.h"

namespace forerun {
namespace {

using test::plain_sampling;

constexpr AcceptRule kRules[] = {AcceptRule::kMatch, AcceptRule::kTargetOnly, AcceptRule::kLeviathan,
                                 AcceptRule::kRejection};

double probability(const Distribution& distribution, int32_t token) {
  return std::exp(static_cast<double>(distribution.logprob(TokenId{token})));
}

// Logits of a few tokens, each impossible once in a while.
std::vector<float> random_logits(std::mt19937& random, int n_vocab) {
  std::normal_distribution<float> normal(0, 1.5f);
  std::vector<float> logits(static_cast<size_t>(n_vocab));
  for (float& logit : logits) {
    logit = random() % 4 == 0 ? -std::numeric_limits<float>::infinity() : normal(random);
  }
  logits[random() % logits.size()] = 1;
  return logits;
}

// The share of `n` drafts of one token, drawn as drafters draw, that verify() takes.
double share_taken(AcceptRule rule, const Distribution& q, const std::vector<float>& target, int n) {
  const int n_vocab = static_cast<int>(target.size());
  const Sampler sampler(plain_sampling(1), n_vocab);
  const Sampler other_noise(plain_sampling(2), n_vocab);
  const SamplerState state;
  SamplerScratch scratch;
  Verdict verdict;
  int n_taken = 0;
  for (int i = 0; i < n; ++i) {
    const Position position{i};
    DraftTree tree;
    if (compares_distributions(rule)) {
      tree.add({.token = other_noise.draw(q, position)});
      tree.set_distribution(kRoot, q);
    } else {
      tree.add({.token = sampler.draw(q, position)});
    }
    verify({tree, [&](int32_t) { return std::span(target); }, sampler, state, position}, rule, scratch,
           verdict);
    n_taken += verdict.path.empty() ? 0 : 1;
  }
  return static_cast<double>(n_taken) / n;
}

TEST(ChanceTaken, IsHowOftenDraftsAreTaken) {
  std::mt19937 random(1);
  constexpr int kVocab = 6;
  constexpr int kDrafts = test::thorough(20'000, 1000);
  for (int round = 0; round < 12; ++round) {
    const std::vector<float> draft = random_logits(random, kVocab);
    const std::vector<float> target = random_logits(random, kVocab);
    const Sampler sampler(plain_sampling(1), kVocab);
    SamplerScratch scratch;
    const Distribution q = sampler.distribution(draft, {}, scratch);
    const Distribution p = sampler.distribution(target, {}, scratch);
    for (const AcceptRule rule : kRules) {
      const double chance = chance_taken(rule, q, p);
      const double deviation = std::sqrt(chance * (1 - chance) / kDrafts);
      EXPECT_NEAR(share_taken(rule, q, target, kDrafts), chance, 4.5 * deviation + 1e-6)
          << to_string(rule) << ", round " << round;
    }
  }
}

TEST(ChanceTaken, IsBoundByTheDistance) {
  std::mt19937 random(2);
  constexpr int kVocab = 9;
  const Sampler sampler(plain_sampling(1), kVocab);
  SamplerScratch scratch;
  for (int round = 0; round < 200; ++round) {
    const Distribution q = sampler.distribution(random_logits(random, kVocab), {}, scratch);
    const Distribution p = sampler.distribution(random_logits(random, kVocab), {}, scratch);
    double distance = 0;
    for (int32_t token = 0; token < kVocab; ++token) {
      distance += std::abs(probability(p, token) - probability(q, token)) / 2;
    }
    const double match = chance_taken(AcceptRule::kMatch, q, p);
    EXPECT_GE(match, (1 - distance) / (1 + distance) - 1e-6);
    EXPECT_LE(match, 1 - distance + 1e-6);
    EXPECT_NEAR(match, chance_taken(AcceptRule::kMatch, p, q), 1e-6);
    EXPECT_NEAR(chance_taken(AcceptRule::kLeviathan, q, p), 1 - distance, 1e-6);
    // Who drafts as the model speaks is always right, but by the rule that ignores it.
    EXPECT_NEAR(chance_taken(AcceptRule::kMatch, p, p), 1, 1e-6);
    EXPECT_LE(chance_taken(AcceptRule::kTargetOnly, p, p), 1);
  }
}

TEST(ChanceTaken, IsAllOrNothingWhenGreedy) {
  const auto only = [](int32_t token) {
    return Distribution{.tokens = {TokenId{token}}, .logprobs = {0}};
  };
  for (const AcceptRule rule : kRules) {
    EXPECT_EQ(chance_taken(rule, only(3), only(3)), 1);
    EXPECT_EQ(chance_taken(rule, only(3), only(4)), 0);
  }
}

class ExamplesTest : public StepperTest {
 protected:
  Sampler sampler(float temperature) const {
    SamplingOptions options;
    options.temperature = temperature;
    options.seed = 1;
    return Sampler(options, loaded_->model->config().n_vocab);
  }
  LayerSet full() const { return LayerSet::full(loaded_->model->config().n_layers); }
  LayerSet without_last_mlp() const {
    LayerSet layers = full();
    layers.set(mlp_block(layers.n_layers() - 1), false);
    return layers;
  }
  std::vector<DiscoExample> collect(const ExampleDrafter& drafter, float temperature,
                                    AcceptRule rule = AcceptRule::kMatch) {
    std::vector<DiscoExample> examples;
    ExampleCollector(first_, drafter, rule).collect(texts_.front(), sampler(temperature), examples);
    return examples;
  }

  Executor first_{loaded_->model, ExecutorOptions{.kv = {.n_cells = 1024}, .max_rows = 256}};
  Executor second_{loaded_->model, ExecutorOptions{.kv = {.n_cells = 256}, .max_rows = 256}};
  std::vector<SearchText> texts_ =
      answer_prompts(first_, loaded_->vocabulary, {tokens("one two three")}, {.generation = greedy(50)});
};

TEST_F(ExamplesTest, TheSameModelIsAlwaysRight) {
  for (Executor* drafter : {&first_, &second_}) {
    const int n_free = first_.cells().n_free();
    for (const float temperature : {0.0f, 0.8f}) {
      const auto examples = collect({.executor = drafter, .layers = full()}, temperature);
      // From the second of 50 tokens on.
      ASSERT_EQ(examples.size(), 49u);
      for (size_t i = 0; i < examples.size(); ++i) {
        EXPECT_NEAR(examples[i].taken, 1, 1e-5);
        EXPECT_NEAR(examples[i].features.back(), std::log(2.0 + static_cast<double>(i)), 1e-5);
      }
    }
    EXPECT_EQ(first_.cells().n_free(), n_free);
    EXPECT_EQ(second_.cells().n_free(), 256);
  }
}

// A model that is another in what it says: the target without a block, but with its own cache.
TEST_F(ExamplesTest, GreedyTokensAreTakenOrNot) {
  const auto examples = collect({.executor = &second_, .layers = without_last_mlp()}, 0);
  size_t n_taken = 0;
  for (const DiscoExample& example : examples) {
    EXPECT_TRUE(example.taken == 0 || example.taken == 1);
    n_taken += example.taken == 1 ? 1 : 0;
  }
  EXPECT_LT(n_taken, examples.size());
}

// By hand, where the drafter is the first to read the answer.
TEST_F(ExamplesTest, SampledTokensHaveTheirChance) {
  const SearchText& text = texts_.front();
  const Sampler choose = sampler(1.0f);
  SamplerScratch scratch;
  const auto read = std::span(text.tokens).first(text.n_prompt);
  const auto logits_of = [&](Executor& executor, const LayerSet& layers) {
    const SequenceId sequence = executor.cells().create();
    read_all(executor, sequence, read);
    const auto node = executor.cells().extend(sequence);
    Pass pass;
    pass.rows.push_back(
        {.sequence = sequence, .node = *node, .token = text.tokens[text.n_prompt], .logits = true});
    pass.layers = layers;
    const auto logits = executor.forward(pass).logits(0);
    const std::vector<float> kept(logits.begin(), logits.end());
    executor.cells().remove(sequence);
    return kept;
  };
  const auto draft = logits_of(second_, without_last_mlp());
  const Distribution q = choose.distribution(draft, {}, scratch);
  const Distribution p = choose.distribution(logits_of(first_, full()), {}, scratch);
  EXPECT_LT(chance_taken(AcceptRule::kLeviathan, q, p), 0.99);
  for (const AcceptRule rule : kRules) {
    const auto examples = collect({.executor = &second_, .layers = without_last_mlp()}, 1.0f, rule);
    EXPECT_NEAR(examples.front().taken, chance_taken(rule, q, p), 1e-4);
    EXPECT_NEAR(examples.front().features[0], 1 / sum_exp(draft, largest(draft), 1.0f), 1e-5);
  }
}

TEST_F(ExamplesTest, ATextThatDoesNotFitIsAnError) {
  Executor small(loaded_->model, ExecutorOptions{.kv = {.n_cells = 32}, .max_rows = 32});
  const int n_free = small.cells().n_free();
  for (SearchText& text : texts_) text.tokens.resize(static_cast<size_t>(n_free) + 2, TokenId{1});
  std::vector<DiscoExample> examples;
  ExampleCollector collector(first_, {.executor = &small, .layers = full()});
  EXPECT_THROW(collector.collect(texts_.front(), sampler(0), examples), Error);
  EXPECT_EQ(small.cells().n_free(), n_free);
}

}  // namespace
}  // namespace forerun
