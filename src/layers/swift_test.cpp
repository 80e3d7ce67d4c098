// Searches on a small model some of whose blocks do nothing: which, they must find out.
#include "layers/swift.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "cost/draft_value.h"
#include "layers/agreement.h"
#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::WrittenText;

class SwiftTest : public test::PlantedTest {
 protected:
  // Agreement on the `n` tokens before `end` of the text.
  std::optional<double> agreement(const RequestView& text, const LayerSet& layers, size_t end,
                                  size_t n) {
    const AgreementWindow window{.request = &text, .end = end, .n = n};
    return measured_agreement(*executor_, layers, {&window, 1});
  }
  // Calls for layers until the search is over.
  static void search(SwiftSelector& selector, const RequestView& request) {
    const auto chooser = selector.begin(request);
    for (int i = 0; i < 5000 && !selector.search().ended(); ++i) chooser();
  }
};

TEST_F(SwiftTest, AgreementIsThatOfTheLayers) {
  for (const float temperature : {0.0f, 1.0f}) {
    const WrittenText text(*executor_, temperature, 120);
    const int n_free = executor_->cells().n_free();
    for (const size_t end : {size_t{60}, text.text().size()}) {
      EXPECT_EQ(agreement(text, LayerSet::full(test::kPlantedLayers), end, 32), 1.0);
      EXPECT_EQ(agreement(text, test::without_planted(), end, 32), 1.0);
      EXPECT_LT(agreement(text, uniform_layers(test::kPlantedLayers, 0.5), end, 32).value(), 0.7);
    }
    EXPECT_EQ(executor_->cells().n_free(), n_free);
    EXPECT_EQ(executor_->cells().n_scratch(text.sequence()), 0);
    // The text goes on as if nothing had been tried.
    const WrittenText again(*executor_, temperature, 120);
    EXPECT_TRUE(std::equal(text.text().begin(), text.text().end(), again.text().begin()));
    executor_->cells().remove(text.sequence());
    executor_->cells().remove(again.sequence());
  }
}

TEST_F(SwiftTest, LeavesOutLessWhereDraftsAreNotTaken) {
  const WrittenText text(*executor_, 1.0f, 60);
  const test::TempDir folder;
  SwiftOptions options{.search = "published", .skip = 0.5, .share = 1};
  options.state = folder.file("state.json").string();
  const auto n_left_out = [](const SwiftSelector& selector) {
    return selector.best()->n_blocks() - selector.best()->n_running();
  };
  {
    SwiftSelector selector(options, {*executor_, costs_});
    const auto chooser = selector.begin(text);
    chooser();
    const int at_first = n_left_out(selector);
    for (int i = 0; i < 20; ++i) selector.observe({.n_tested = 10, .n_agreed = 8, .n_drafted = 10});
    EXPECT_EQ(selector.skip(), 0.5) << "eight in ten is enough";
    for (int i = 0; i < 20; ++i) selector.observe({.n_tested = 10, .n_agreed = 6, .n_drafted = 10});
    EXPECT_EQ(selector.skip(), 0.4);
    chooser();
    EXPECT_LT(n_left_out(selector), at_first);
  }
  SwiftSelector later(options, {*executor_, costs_});
  EXPECT_EQ(later.skip(), 0.4) << "as the kept state has it";
  EXPECT_GT(later.search().n_scores(), 0);
  options.search = "neighbour";
  options.state.clear();
  SwiftSelector free(options, {*executor_, costs_});
  for (int i = 0; i < 40; ++i) free.observe({.n_tested = 9, .n_agreed = 1, .n_drafted = 9});
  EXPECT_EQ(free.skip(), 0.5) << "its sets are of any size";
}

TEST_F(SwiftTest, LeavesOutAsMuchAsItIsToldTo) {
  const WrittenText text(*executor_, 1.0f, 60);
  SwiftSelector selector({.search = "published", .skip = 0.5, .adapt = false, .share = 1},
                         {*executor_, costs_});
  const auto chooser = selector.begin(text);
  for (int i = 0; i < 40; ++i) selector.observe({.n_tested = 9, .n_agreed = 1, .n_drafted = 9});
  EXPECT_EQ(selector.skip(), 0.5);
}

TEST_F(SwiftTest, AsPublishedSpreadsBlocksUntilThereIsAnAnswerToTryThemOn) {
  const SwiftOptions options{.search = "published", .skip = 0.25, .share = 1};
  const std::vector<TokenId> prompt(60, TokenId{7});
  for (const int n_answer : {10, 40}) {
    const WrittenText text(*executor_, 1.0f, n_answer, prompt);
    SwiftSelector selector(options, {*executor_, costs_});
    const auto chooser = selector.begin(text);
    EXPECT_EQ(chooser().value().layers, uniform_layers(test::kPlantedLayers, 0.25));
    EXPECT_EQ(selector.search().n_scores(), n_answer > options.window + 1 ? 1 : 0);
    executor_->cells().remove(text.sequence());
  }
}

// Prompts are nothing that the model would say.
TEST_F(SwiftTest, AgreementOnPromptsIsWithTheModelsOwnWords) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < 40; ++i) prompt.push_back(TokenId{(37 * i + 11) % 300});
  const WrittenText text(*executor_, 1.0f, 30, prompt);
  AgreementWindow window{.request = &text, .end = text.text().size(), .n = 60};
  EXPECT_LT(measured_agreement(*executor_, test::without_planted(), {&window, 1}).value(), 0.7);
  const std::vector<TokenId> words = model_tokens(*executor_, window);
  ASSERT_EQ(words.size(), 60u);
  EXPECT_TRUE(std::equal(words.end() - 30, words.end(), text.text().end() - 30)) << "an answer is";
  window.expected = words;
  EXPECT_EQ(measured_agreement(*executor_, test::without_planted(), {&window, 1}), 1.0);
  EXPECT_EQ(executor_->cells().n_scratch(text.sequence()), 0);
  window.n = 30;
  EXPECT_TRUE(model_tokens(*executor_, window).empty()) << "no need to ask";
}

TEST_F(SwiftTest, AgreementNeedsRoom) {
  const WrittenText text(*executor_, 1.0f, 100);
  const SequenceId other = executor_->cells().create();
  while (executor_->cells().n_free() > 20) executor_->cells().extend(other);
  EXPECT_EQ(agreement(text, LayerSet::full(test::kPlantedLayers), 100, 32), std::nullopt);
  EXPECT_EQ(executor_->cells().n_free(), 20);
}

TEST_F(SwiftTest, FindsWhatIsPlanted) {
  const WrittenText text(*executor_, 1.0f, 200);
  SwiftOptions options;
  options.share = 1.0;
  options.window = 64;
  SwiftSelector selector(options, {*executor_, costs_});
  search(selector, text);
  const auto best = selector.best();
  ASSERT_TRUE(best.has_value());
  // What both are worth on text that no candidate was tried on: blocks that hardly matter here
  // may go as well.
  const auto value = [&](const LayerSet& layers) {
    const double agreed = agreement(text, layers, 70, 64).value();
    return best_draft(costs_, agreed, costs_.pass_with(layers, 0), 0).tokens_per_second;
  };
  EXPECT_GE(value(*best), 0.95 * value(test::without_planted()));
  EXPECT_GT(value(*best), 1.3 * value(LayerSet::full(test::kPlantedLayers)));
  EXPECT_LE(selector.search().n_scores(), 1000);
}

TEST_F(SwiftTest, AsPublishedEverySetHasTheSameSize) {
  const WrittenText text(*executor_, 1.0f, 120);
  SwiftOptions options;
  options.search = "published";
  options.share = 1.0;
  options.skip = 0.25;
  options.max_candidates = 60;
  SwiftSelector selector(options, {*executor_, costs_});
  const auto chooser = selector.begin(text);
  double best = 0;
  for (int i = 0; i < 60; ++i) {
    const auto plan = chooser();
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->layers.n_blocks() - plan->layers.n_running(), 6);
    EXPECT_GE(selector.search().best()->score, best) << "never worse";
    best = selector.search().best()->score;
  }
  EXPECT_LE(best, 1.0);
}

TEST_F(SwiftTest, DoesNotDraftWhereItCannotPay) {
  const WrittenText text(*executor_, 1.0f, 120);
  Calibration every_row = test::planted_costs();  // costs a pass
  every_row.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                               {.n_rows = 2, .seconds = 52, .seconds_per_token = 0}});
  const PassCosts dear(every_row);
  SwiftOptions options;
  options.share = 1.0;
  options.max_candidates = 100;
  SwiftSelector selector(options, {*executor_, dear});
  search(selector, text);
  EXPECT_EQ(selector.best(), std::nullopt);
}

TEST_F(SwiftTest, TakesNoMoreTimeThanItsShare) {
  const WrittenText text(*executor_, 1.0f, 120);
  SwiftOptions options;
  options.share = 0.0;
  SwiftSelector selector(options, {*executor_, costs_});
  const auto chooser = selector.begin(text);
  for (int i = 0; i < 50; ++i) chooser();
  EXPECT_EQ(selector.search().n_scores(), 0);
  const WrittenText brief(*executor_, 1.0f, 10);
  SwiftSelector other(options, {*executor_, costs_});
  EXPECT_FALSE(other.begin(brief)()) << "too little text to try anything on";
}

TEST_F(SwiftTest, KeepsWhatItLearnt) {
  const WrittenText text(*executor_, 1.0f, 120);
  const test::TempDir folder;
  SwiftOptions options;
  options.share = 1.0;
  options.state = folder.file("state.json").string();
  std::optional<LayerSet> best;
  {
    SwiftSelector selector(options, {*executor_, costs_});
    const auto chooser = selector.begin(text);
    for (int i = 0; i < 60; ++i) chooser();
    EXPECT_FALSE(std::filesystem::exists(options.state)) << "not in the midst of a request";
    selector.finish();
    EXPECT_EQ(SwiftSelector(options, {*executor_, costs_}).search().n_scores(), 60);
    for (int i = 0; i < 20; ++i) chooser();
    best = selector.best();
  }
  SwiftSelector later(options, {*executor_, costs_});
  EXPECT_EQ(later.search().n_scores(), 80) << "at the end too";
  EXPECT_EQ(later.best(), best);
}

TEST_F(SwiftTest, RefusesAStateThatDoesNotFit) {
  const test::TempDir folder;
  SwiftOptions options;
  options.share = 1.0;
  options.state = folder.file("state.json").string();
  const auto error_of = [&](const SwiftOptions& chosen) {
    try {
      const SwiftSelector selector(chosen, {*executor_, costs_});
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos);
      EXPECT_NE(message.find(options.state), std::string::npos) << message;
      return true;
    }
    return false;
  };
  {
    const WrittenText text(*executor_, 1.0f, 60);
    SwiftSelector selector(options, {*executor_, costs_});
    selector.begin(text)();
  }
  EXPECT_FALSE(error_of(options));
  SwiftOptions published = options;
  published.search = "published";
  EXPECT_TRUE(error_of(published)) << "another search";
  const auto write = [&](const std::string& state) { std::ofstream(options.state) << state; };
  for (const char* state : {"", "{}", "[]", R"({"forerun_swift": 2})",
                            R"({"forerun_swift": 1, "model": "0000000000000001", "search": {}})"}) {
    write(state);
    EXPECT_TRUE(error_of(options)) << state;
  }
}

// Requests do not suffer from a state that cannot be kept.
TEST_F(SwiftTest, WarnsWhereItCannotKeepItsState) {
  const WrittenText text(*executor_, 1.0f, 60);
  const test::TempDir folder;
  SwiftOptions options;
  options.share = 1.0;
  options.state = (folder.path() / "none" / "state.json").string();
  int n_warnings = 0;
  {
    SwiftSelector selector(
        options,
        {.executor = *executor_, .costs = costs_, .warn = [&](std::string_view) { ++n_warnings; }});
    const auto chooser = selector.begin(text);
    chooser();
    selector.finish();
    EXPECT_EQ(n_warnings, 1);
  }
  EXPECT_EQ(n_warnings, 2);
}

}  // namespace
}  // namespace forerun
