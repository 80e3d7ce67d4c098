// The dynamic programme against its definition, computed naively, and against all sets.
#include "layers/knapsack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <random>

#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::kPlantedLayers;
using test::WrittenText;

// A model of small made-up blocks: block b adds a fixed matrix times the tanh of its input.
class MadeUpBlocks final : public BlockStates {
 public:
  MadeUpBlocks(int n_layers, uint32_t seed) : n_layers_(n_layers) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> strength(0.02f, 0.6f);
    for (int block = 0; block < 2 * n_layers; ++block) {
      const float scale = strength(random);
      auto& matrix = matrices_.emplace_back(kEmbd * kEmbd);
      for (float& value : matrix) value = scale * normal(random);
    }
    std::vector<float> state(kTokens * kEmbd);
    for (float& value : state) value = normal(random);
    full_.push_back(state);
    for (int block = 0; block < 2 * n_layers; ++block) {
      run(BlockId{block}, state);
      full_.push_back(state);
    }
  }
  int n_layers() const override { return n_layers_; }
  size_t n_tokens() const override { return kTokens; }
  size_t n_embd() const override { return kEmbd; }
  std::span<const float> full(int boundary) const override {
    return full_[static_cast<size_t>(boundary)];
  }
  void run(BlockId block, std::span<float> states) override {
    n_run_ += states.size() / branch_size();
    const auto& matrix = matrices_[static_cast<size_t>(block)];
    for (size_t row = 0; row < states.size(); row += kEmbd) {
      std::array<float, kEmbd> in;
      for (size_t i = 0; i < kEmbd; ++i) in[i] = std::tanh(states[row + i]);
      for (size_t i = 0; i < kEmbd; ++i) {
        for (size_t k = 0; k < kEmbd; ++k) states[row + i] += matrix[i * kEmbd + k] * in[k];
      }
    }
  }
  std::vector<Said> say(std::span<const float> states) override {
    std::vector<Said> said;
    for (size_t at = 0; at < states.size(); at += kEmbd) {
      const auto row = std::span<const float>(full_.back()).subspan(at % branch_size(), kEmbd);
      said.push_back(
          {.is_text = mean_cosine(states.subspan(at, kEmbd), row, kEmbd) > 0.9, .probability = 1});
    }
    return said;
  }
  std::vector<float> run_set(const LayerSet& layers) {
    std::vector<float> state = full_.front();
    for (int block = 0; block < 2 * n_layers_; ++block) {
      if (layers.runs(BlockId{block})) run(BlockId{block}, state);
    }
    return state;
  }
  size_t n_run() const { return n_run_; }

 private:
  static constexpr size_t kTokens = 3;
  static constexpr size_t kEmbd = 6;
  int n_layers_;
  std::vector<std::vector<float>> matrices_;
  std::vector<std::vector<float>> full_;
  size_t n_run_ = 0;
};

// g(i, j) by recursion from the definition; nothing is shared, nothing is pruned.
class Naive {
 public:
  struct State {
    std::vector<float> states;
    double cosine;
    LayerSet layers;
  };
  Naive(MadeUpBlocks& blocks, const KnapsackOptions& options) : blocks_(blocks), options_(options) {}

  std::optional<State> g(int boundary, int weight) {
    if (weight < 0) return std::nullopt;
    if (boundary == 2) {
      if (weight != 0) return std::nullopt;
      const auto full = blocks_.full(2);
      return State{.states = {full.begin(), full.end()},
                   .cosine = 1,
                   .layers = LayerSet::full(blocks_.n_layers())};
    }
    const int block = boundary - 1;
    std::optional<State> best = g(boundary - 1, weight);
    if (best) {
      blocks_.run(BlockId{block}, best->states);
      best->cosine = cosine(best->states, boundary);
      if (best->cosine < options_.min_cosine) best.reset();
    }
    if (block >= 2 * (blocks_.n_layers() - 1)) return best;
    const int w = block % 2 == 0 ? options_.attention_weight : options_.mlp_weight;
    std::optional<State> skip = g(boundary - 1, weight - w);
    if (!skip) return best;
    skip->cosine = cosine(skip->states, boundary);
    if (skip->cosine < options_.min_cosine || (best && skip->cosine <= best->cosine)) return best;
    skip->layers.set(BlockId{block}, false);
    return skip;
  }

 private:
  double cosine(const std::vector<float>& states, int boundary) const {
    return mean_cosine(states, blocks_.full(boundary), blocks_.n_embd());
  }
  MadeUpBlocks& blocks_;
  const KnapsackOptions& options_;
};

TEST(Knapsack, IsItsDefinition) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    MadeUpBlocks blocks(6, seed);
    const KnapsackOptions options{.attention_weight = seed % 3 == 0 ? 2 : 1,
                                  .mlp_weight = seed % 3 == 1 ? 3 : 1,
                                  .max_weight = seed % 2 == 0 ? 1000 : 6,
                                  .min_cosine = seed % 4 == 0 ? 0.8 : 0.5};
    std::map<int, KnapsackChoice> found;
    for (const KnapsackChoice& choice : solve_knapsack(blocks, options)) {
      found.emplace(choice.skipped_weight, choice);
    }
    const int max_weight =
        std::min(options.max_weight, 6 * (options.attention_weight + options.mlp_weight));
    Naive naive(blocks, options);
    for (int weight = 0; weight <= max_weight; ++weight) {
      const auto expected = naive.g(12, weight);
      ASSERT_EQ(found.contains(weight), expected.has_value())
          << "seed " << seed << ", weight " << weight;
      if (!expected) continue;
      EXPECT_DOUBLE_EQ(found.at(weight).cosine, expected->cosine);
      EXPECT_EQ(found.at(weight).layers, expected->layers);
    }
    EXPECT_LE(found.rbegin()->first, max_weight);
  }
}

// What a choice says of itself is so, and it is the best or nearly the best set of its size.
TEST(Knapsack, ComesCloseToTheBestOfAllSets) {
  double worst = 1, sum = 0;
  int n = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    MadeUpBlocks blocks(6, seed);
    std::vector<double> best(9, -1);
    for (unsigned bits = 0; bits < 256; ++bits) {
      LayerSet layers = LayerSet::full(6);
      for (int b = 0; b < 8; ++b) layers.set(BlockId{2 + b}, (bits >> b & 1) == 0);
      const auto states = blocks.run_set(layers);
      double& known = best[static_cast<size_t>(__builtin_popcount(bits))];
      known = std::max(known, mean_cosine(states, blocks.full(12), blocks.n_embd()));
    }
    for (const KnapsackChoice& choice : solve_knapsack(blocks, {.min_cosine = -1})) {
      EXPECT_EQ(choice.layers.n_blocks() - choice.layers.n_running(), choice.skipped_weight);
      const double cosine = mean_cosine(blocks.run_set(choice.layers), blocks.full(12), blocks.n_embd());
      EXPECT_NEAR(choice.cosine, cosine, 1e-12);
      const double optimum = best[static_cast<size_t>(choice.skipped_weight)];
      EXPECT_LE(cosine, optimum + 1e-12);
      worst = std::min(worst, cosine / optimum);
      sum += cosine / optimum;
      ++n;
    }
  }
  RecordProperty("mean_of_optimum", std::to_string(sum / n));
  RecordProperty("worst_of_optimum", std::to_string(worst));
  EXPECT_GT(sum / n, 0.97);
  EXPECT_GT(worst, 0.75);
}

// The best of all sets of whole layers that CLaSp's recursion can reach, naively.
TEST(Knapsack, WholeLayersGoTogether) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    MadeUpBlocks blocks(6, seed);
    const auto choices =
        solve_knapsack(blocks, {.max_weight = 3, .min_cosine = -1, .whole_layers = true});
    ASSERT_EQ(choices.size(), 4u);
    for (const KnapsackChoice& choice : choices) {
      int n_skipped = 0;
      for (int layer = 0; layer < 6; ++layer) {
        EXPECT_EQ(choice.layers.runs(attention_block(layer)), choice.layers.runs(mlp_block(layer)));
        n_skipped += choice.layers.runs(mlp_block(layer)) ? 0 : 1;
      }
      EXPECT_EQ(n_skipped, choice.skipped_weight);
      const double cosine = mean_cosine(blocks.run_set(choice.layers), blocks.full(12), blocks.n_embd());
      EXPECT_NEAR(choice.cosine, cosine, 1e-12);
    }
    // One layer: the recursion leaves nothing to chance, so it is the best there is.
    double best = -1;
    for (int layer = 0; layer < 6; ++layer) {
      const std::vector<BlockId> both = {attention_block(layer), mlp_block(layer)};
      const auto states = blocks.run_set(LayerSet::full(6).without(both));
      best = std::max(best, mean_cosine(states, blocks.full(12), blocks.n_embd()));
    }
    EXPECT_GT(choices[1].cosine, 0.9 * best);
  }
}

TEST(Knapsack, FewerBranchesCostLess) {
  MadeUpBlocks all(20, 3), some(20, 3);
  const size_t before = all.n_run();
  solve_knapsack(all, {});
  const auto choices = solve_knapsack(some, {.max_branches = 4});
  EXPECT_LE(choices.size(), 4u);
  EXPECT_EQ(choices.front().skipped_weight, 0) << "the whole model is always a choice";
  EXPECT_LE(some.n_run() - before, 3u * 38);
  EXPECT_GT(all.n_run() - before, 3 * (some.n_run() - before));
}

TEST(Knapsack, ModelsWithoutMiddleKeepAll) {
  for (const int n_layers : {1, 2}) {
    MadeUpBlocks blocks(n_layers, 1);
    const auto choices = solve_knapsack(blocks, {});
    ASSERT_EQ(choices.size(), 1u);
    EXPECT_TRUE(choices.front().layers.is_full());
  }
}

using PlantedKnapsack = test::PlantedTest;

TEST_F(PlantedKnapsack, FindsWhatIsPlanted) {
  const WrittenText text(*executor_, 1.0f, 60);
  TextBlockStates states(*executor_, text, 60, 8);
  const auto choices = solve_knapsack(states, {});
  const auto planted = std::find_if(choices.begin(), choices.end(), [](const KnapsackChoice& choice) {
    return choice.skipped_weight == static_cast<int>(test::kPlanted.size());
  });
  ASSERT_NE(planted, choices.end());
  EXPECT_EQ(planted->layers, test::without_planted());
  EXPECT_EQ(planted->cosine, 1.0);
  EXPECT_EQ(planted->agreement, 1.0);
}

}  // namespace
}  // namespace forerun
