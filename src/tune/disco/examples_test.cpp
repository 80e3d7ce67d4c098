#include "tune/disco/examples.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "engine/stepper_fixture.h"
#include "tune/answers.h"

namespace forerun {
namespace {

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
  std::vector<DiscoExample> collect(const ExampleDrafter& drafter, float temperature) {
    std::vector<DiscoExample> examples;
    ExampleCollector(first_, drafter).collect(texts_.front(), sampler(temperature), examples);
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

// What both distributions share, by hand, where the drafter is the first to read the answer.
TEST_F(ExamplesTest, SampledTokensHaveTheirChance) {
  const SearchText& text = texts_.front();
  const auto examples = collect({.executor = &second_, .layers = without_last_mlp()}, 1.0f);
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
  double distance = 0;
  for (int32_t token = 0; token < choose.n_vocab(); ++token) {
    const auto probability = [&](const Distribution& d) {
      return std::exp(static_cast<double>(d.logprob(TokenId{token})));
    };
    distance += std::abs(probability(p) - probability(q)) / 2;
  }
  EXPECT_GT(distance, 0.01);
  EXPECT_NEAR(examples.front().taken, 1 - distance, 1e-4);
  EXPECT_NEAR(examples.front().features[0],
              std::exp(largest(draft) - largest(draft)) / sum_exp(draft, largest(draft), 1.0f), 1e-5);
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
