// Searches on a small model some of whose blocks do nothing: which, they must find out.
#include "tune/layer_search.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "layers/layer_selector.h"
#include "layers/planted_model.h"

namespace forerun {
namespace {

class LayerSearchTest : public ::testing::Test {
 protected:
  std::vector<SearchText> texts(int n_texts, int n_tokens) {
    std::vector<SearchText> texts;
    for (int i = 0; i < n_texts; ++i) {
      const test::WrittenText text(executor_, 0, n_tokens,
                                   {TokenId{1}, TokenId{7 + i}, TokenId{90 - i}});
      texts.push_back({.tokens = {text.text().begin(), text.text().end()}, .n_prompt = text.n_prompt()});
      executor_.cells().remove(text.sequence());
    }
    return texts;
  }

  std::shared_ptr<const Model> model_ = test::load_planted_model();
  Executor executor_{model_, ExecutorOptions{.kv = {.n_cells = 1024}, .max_rows = 128}};
  const PassCosts costs_{test::planted_costs()};
};

// In passes of few rows or many, and as each window alone has it.
TEST_F(LayerSearchTest, AgreementIsThatOfAllTexts) {
  const std::vector<SearchText> written = texts(5, 70);
  Executor narrow(model_, ExecutorOptions{.kv = {.n_cells = 1024}, .max_rows = 40});
  ExpectedSpeed at_once(executor_, costs_, written);
  ExpectedSpeed in_parts(narrow, costs_, written);
  EXPECT_EQ(at_once.n_tokens(), 5 * 70);
  EXPECT_EQ(at_once.agreement(LayerSet::full(test::kPlantedLayers)), 1.0);
  EXPECT_EQ(at_once.agreement(test::without_planted()), 1.0);
  const LayerSet uniform = uniform_layers(test::kPlantedLayers, 0.3);
  EXPECT_LT(at_once.agreement(uniform), 0.9);
  EXPECT_EQ(at_once.agreement(uniform), in_parts.agreement(uniform));
  double sum = 0;
  for (const SearchText& text : written) {
    sum += ExpectedSpeed(executor_, costs_, {text}).agreement(uniform) / 5;
  }
  EXPECT_NEAR(at_once.agreement(uniform), sum, 1e-12);
  EXPECT_LT(at_once.speedup(LayerSet::full(test::kPlantedLayers)), 1.0);
  EXPECT_GT(at_once.speedup(test::without_planted()), 1.2);
}

TEST_F(LayerSearchTest, TheCacheIsAsBefore) {
  const int n_free = executor_.cells().n_free();
  const std::vector<SearchText> written = texts(3, 40);
  {
    ExpectedSpeed objective(executor_, costs_, written);
    const int n_left = executor_.cells().n_free();
    objective.speedup(test::without_planted());
    EXPECT_EQ(executor_.cells().n_free(), n_left);
  }
  EXPECT_EQ(executor_.cells().n_free(), n_free);
  const SequenceId other = executor_.cells().create();
  while (executor_.cells().n_free() > 150) executor_.cells().extend(other);
  EXPECT_THROW(ExpectedSpeed(executor_, costs_, written), Error) << "no room to try anything";
  while (executor_.cells().n_free() > 60) executor_.cells().extend(other);
  EXPECT_THROW(ExpectedSpeed(executor_, costs_, written), Error) << "no room for the texts";
  EXPECT_EQ(executor_.cells().n_free(), 60);
  EXPECT_THROW(ExpectedSpeed(executor_, costs_, {}), Error);
}

// What it needs fewer sets for than searches by trial.
TEST_F(LayerSearchTest, TheKnapsackFindsWhatIsPlanted) {
  ExpectedSpeed objective(executor_, costs_, texts(6, 64));
  const double planted = objective.speedup(test::without_planted());
  LayerSearchProgress last;
  LayerSearchOptions options;
  options.method = "knapspec";
  options.progress = [&](const LayerSearchProgress& progress) { last = progress; };
  const LayerSearchResult found = search_layers(objective, test::kPlantedLayers, options);
  EXPECT_GE(found.speedup, 0.99 * planted);
  EXPECT_EQ(found.speedup, objective.speedup(found.layers));
  EXPECT_LE(found.n_candidates, 1000);
  ASSERT_EQ(found.best_so_far.size(), static_cast<size_t>(found.n_candidates));
  EXPECT_EQ(found.best_so_far.back(), found.speedup);
  EXPECT_EQ(last.n_candidates, found.n_candidates);
  EXPECT_EQ(last.n_skipped, found.layers.n_blocks() - found.layers.n_running());
  // From its end at once.
  options.first_sets = {found.layers};
  options.max_candidates = 1;
  EXPECT_EQ(search_layers(objective, test::kPlantedLayers, options).layers, found.layers);
}

TEST_F(LayerSearchTest, TheKnapsackKeepsToItsCap) {
  ExpectedSpeed objective(executor_, costs_, texts(2, 64));
  LayerSearchOptions options;
  options.method = "knapspec";
  options.cap = 0.25;
  const LayerSearchResult found = search_layers(objective, test::kPlantedLayers, options);
  EXPECT_EQ(found.layers.n_blocks() - found.layers.n_running(), test::kPlantedLayers / 2);
}

// A value that needs no model: blocks as they are planted are good.
class Likeness final : public LayerObjective {
 public:
  double speedup(const LayerSet& layers) override {
    double n_same = 0;
    for (int b = 0; b < layers.n_blocks(); ++b) {
      n_same += layers.runs(BlockId{b}) == test::without_planted().runs(BlockId{b}) ? 1 : 0;
    }
    return 2 * n_same / layers.n_blocks();
  }
};

TEST_F(LayerSearchTest, EveryMethodFindsBetterSets) {
  Likeness objective;
  for (const std::string_view method : layer_search_methods()) {
    LayerSearchOptions options;
    options.method = method;
    options.max_candidates = 40;
    if (method == "knapspec") {
      EXPECT_THROW(search_layers(objective, test::kPlantedLayers, options), Error) << "no states";
      continue;
    }
    const LayerSearchResult found = search_layers(objective, test::kPlantedLayers, options);
    EXPECT_EQ(found.n_candidates, 40) << method;
    EXPECT_GT(found.speedup, found.best_so_far.front()) << method;
    EXPECT_EQ(found.speedup, objective.speedup(found.layers)) << method;
    EXPECT_TRUE(std::is_sorted(found.best_so_far.begin(), found.best_so_far.end())) << method;
    EXPECT_EQ(search_layers(objective, test::kPlantedLayers, options).layers, found.layers) << method;
  }
}

TEST_F(LayerSearchTest, EndsWhenTold) {
  Likeness objective;
  int n_asked = 0;
  LayerSearchOptions options;
  options.method = "neighbour";
  options.is_cancelled = [&] { return ++n_asked > 5; };
  EXPECT_EQ(search_layers(objective, test::kPlantedLayers, options).n_candidates, 5);
  options.is_cancelled = [] { return true; };
  EXPECT_TRUE(search_layers(objective, test::kPlantedLayers, options).layers.is_full());
}

TEST_F(LayerSearchTest, RefusesWhatMakesNoSense) {
  Likeness objective;
  LayerSearchOptions options;
  options.method = "guess";
  EXPECT_THROW(search_layers(objective, test::kPlantedLayers, options), Error);
  EXPECT_THROW(search_layers(objective, 2, LayerSearchOptions()), Error) << "nothing may be left out";
}

}  // namespace
}  // namespace forerun
