// Searches for layers on a model whose redundant blocks are known: what they find is worth as
// much as leaving out those.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cost/draft_value.h"
#include "layers/knapspec.h"
#include "support/engine.h"
#include "support/model_files.h"
#include "text/vocabulary.h"
#include "tune/answers.h"
#include "tune/layer_objective.h"
#include "tune/layer_search.h"

namespace forerun {
namespace {

using namespace test;

// About what two cores take, so that the test is the same everywhere.
const PassCosts kCosts(
    {.curve = CostCurve({{.n_rows = 1, .seconds = 22e-3, .seconds_per_token = 1e-6},
                         {.n_rows = 8, .seconds = 37e-3, .seconds_per_token = 4e-6},
                         {.n_rows = 32, .seconds = 100e-3, .seconds_per_token = 1e-5}}),
     .blocks = {.attention = 45e-6, .mlp = 95e-6, .rest = 2.5e-3}});

class PlantedLayers : public ::testing::Test {
 protected:
  PlantedLayers()
      : model_(load_model(model_file("smollm2-deep"), 2)),
        executor_(make_executor(model_, KvType::kF16, 2048, 512)),
        n_layers_(model_->config().n_layers),
        planted_(LayerSet::full(n_layers_)) {
    const auto blocks = model_->file().metadata().get_int_array("forerun.planted_blocks");
    for (const int64_t block : blocks.value()) {
      planted_.set(BlockId{static_cast<int>(block)}, false);
    }
    const Vocabulary vocabulary = Vocabulary::load(model_->file().metadata());
    std::vector<std::vector<TokenId>> prompts;
    for (const char* prompt : {"The history of the bicycle begins in the early nineteenth century, when",
                               "To bake bread you need flour, water, salt and yeast. First"}) {
      prompts.push_back(vocabulary.tokenize(prompt));
    }
    AnsweringOptions options{.generation = greedy_options(32)};
    options.generation.ignore_eos = true;
    objective_ = std::make_unique<ExpectedSpeed>(
        *executor_, kCosts, answer_prompts(*executor_, vocabulary, prompts, options));
  }

  std::shared_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  int n_layers_;
  LayerSet planted_;
  std::unique_ptr<ExpectedSpeed> objective_;
};

TEST_F(PlantedLayers, TheKnapsackFindsThem) {
  const double planted = objective_->speedup(planted_);
  ASSERT_GT(planted, 1.3);
  LayerSearchOptions options;
  options.method = "knapspec";
  options.max_candidates = 40;
  const LayerSearchResult found = search_layers(*objective_, n_layers_, options);
  EXPECT_GE(found.speedup, 0.95 * planted);

  // With as few branches as beside requests.
  const auto states = objective_->states(4);
  double best = 0;
  for (const KnapsackChoice& choice : knapspec_choices(*states, {.branches = 8}, kCosts, 100)) {
    best = std::max(best, objective_->speedup(choice.layers));
  }
  EXPECT_GE(best, 0.95 * planted);
}

TEST_F(PlantedLayers, SearchesByTrialFindThem) {
  const double planted = objective_->speedup(planted_);
  for (const char* method : {"bayesian", "neighbour"}) {
    LayerSearchOptions options;
    options.method = method;
    options.max_candidates = 30;
    const LayerSearchResult found = search_layers(*objective_, n_layers_, options);
    EXPECT_GE(found.speedup, 0.95 * planted) << method;
    EXPECT_GE(found.best_so_far.back(), found.best_so_far.front());
  }
}

}  // namespace
}  // namespace forerun
