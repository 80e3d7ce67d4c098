// Selectors that look at the text now and then, on a small model some of whose blocks do nothing.
#include <gtest/gtest.h>

#include "cost/draft_value.h"
#include "layers/agreement.h"
#include "layers/clasp.h"
#include "layers/del.h"
#include "layers/knapspec.h"
#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::kPlantedLayers;
using test::WrittenText;

constexpr IntervalOptions kNoLimit = {.interval = 64, .share = 1.0};

// A written text that is shown token by token.
class GrowingText final : public RequestView {
 public:
  GrowingText(const WrittenText& text, size_t n_shown) : text_(text), n_shown_(n_shown) {}
  void grow() { n_shown_ = std::min(n_shown_ + 1, text_.text().size()); }

  std::span<const TokenId> text() const override { return text_.text().first(n_shown_); }
  size_t n_prompt() const override { return text_.n_prompt(); }
  SequenceId sequence() const override { return text_.sequence(); }
  const Sampler& sampler() const override { return text_.sampler(); }
  const SamplerState& state() const override { return text_.state(); }
  bool compares_distributions() const override { return false; }

 private:
  const WrittenText& text_;
  size_t n_shown_;
};

class IntervalSelectors : public test::PlantedTest {
 protected:
  // What a request drafts with after so many steps.
  static std::optional<DraftPlan> plan_after(LayerSelector& selector, const WrittenText& text,
                                             int n_steps) {
    GrowingText request(text, text.text().size() - 10);
    const auto chooser = selector.begin(request);
    for (int i = 1; i < n_steps; ++i) {
      chooser();
      request.grow();
    }
    return chooser();
  }
  double value(const LayerSet& layers, const RequestView& request) {
    const AgreementWindow window{.request = &request, .end = request.text().size(), .n = 100};
    const double agreement = measured_agreement(*executor_, layers, {&window, 1}).value();
    return best_draft(costs_, agreement, costs_.pass_with(layers, 0), 0).tokens_per_second;
  }
};

TEST_F(IntervalSelectors, KnapSpecFindsWhatIsPlanted) {
  const WrittenText text(*executor_, 1.0f, 200);
  for (const int branches : {0, 6}) {
    const auto selector = make_knapspec({.when = kNoLimit, .branches = branches}, {*executor_, costs_});
    EXPECT_FALSE(plan_after(*selector, text, 6)) << "before it has looked";
    const auto plan = plan_after(*selector, text, 8);
    ASSERT_TRUE(plan.has_value());
    EXPECT_GE(value(plan->layers, text), 0.95 * value(test::without_planted(), text));
    EXPECT_GT(plan->max_tokens, 1);
    EXPECT_TRUE(plan_after(*selector, text, 1)) << "what is known stays for other requests";
  }
}

TEST_F(IntervalSelectors, KnapSpecKeepsToItsCap) {
  const WrittenText text(*executor_, 1.0f, 120);
  const auto selector =
      make_knapspec({.when = kNoLimit, .cap = 0.25, .branches = 0}, {*executor_, costs_});
  const auto plan = plan_after(*selector, text, 8);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->layers.n_blocks() - plan->layers.n_running(), kPlantedLayers / 2);
}

TEST_F(IntervalSelectors, KnapSpecDoesNotDraftWhereItCannotPay) {
  const WrittenText text(*executor_, 1.0f, 120);
  Calibration every_row = test::planted_costs();  // costs a pass
  every_row.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                               {.n_rows = 2, .seconds = 52, .seconds_per_token = 0}});
  const PassCosts dear(every_row);
  const auto selector = make_knapspec({.when = kNoLimit}, {*executor_, dear});
  const int64_t before = executor_->n_passes();
  EXPECT_FALSE(plan_after(*selector, text, 64));
  const int64_t first_look = executor_->n_passes() - before;
  EXPECT_GT(first_look, 0);
  // Looks in vain become rare: this many steps would have had many of them.
  for (int i = 0; i < 64; ++i) plan_after(*selector, text, 64);
  EXPECT_LE(executor_->n_passes() - before, 8 * first_look);
}

TEST_F(IntervalSelectors, KnapSpecStopsWhenItsDraftsFail) {
  const WrittenText text(*executor_, 1.0f, 120);
  const auto selector = make_knapspec({.when = kNoLimit}, {*executor_, costs_});
  plan_after(*selector, text, 8);
  const auto chooser = selector->begin(text);
  const int at_first = chooser().value().max_tokens;
  for (int i = 0; i < 10; ++i) selector->observe({.n_tested = 2, .n_agreed = 1});
  const auto later = chooser();
  EXPECT_LT(later ? later->max_tokens : 0, at_first);
  for (int i = 0; i < 100; ++i) selector->observe({.n_tested = 1, .n_agreed = 0});
  EXPECT_FALSE(chooser());
}

TEST_F(IntervalSelectors, KnapSpecAsPublishedLeavesLengthsToTheThreshold) {
  const WrittenText text(*executor_, 1.0f, 120);
  const KnapSpecOptions published{.when = kNoLimit, .branches = 0, .check = 0, .adapt = false};
  const auto selector = make_knapspec(published, {*executor_, costs_});
  plan_after(*selector, text, 8);
  const auto chooser = selector->begin(text);
  for (int i = 0; i < 100; ++i) selector->observe({.n_tested = 1, .n_agreed = 0});
  const auto plan = chooser();
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->max_tokens, DraftPlan{.layers = plan->layers}.max_tokens);
  EXPECT_FALSE(plan->layers.is_full());
  // Where all blocks are the best choice, it does not draft with them.
  Calibration every_row = test::planted_costs();
  every_row.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                               {.n_rows = 2, .seconds = 52, .seconds_per_token = 0}});
  const PassCosts dear(every_row);
  EXPECT_FALSE(plan_after(*make_knapspec(published, {*executor_, dear}), text, 8));
}

TEST_F(IntervalSelectors, KnapSpecGoesOnWithWhatItChoseBefore) {
  const WrittenText text(*executor_, 1.0f, 120);
  const auto first = make_knapspec({.when = kNoLimit}, {*executor_, costs_});
  EXPECT_FALSE(first->learnt()) << "it has not looked yet";
  plan_after(*first, text, 8);
  const auto later = make_knapspec({.when = {.interval = 64, .share = 0.0}}, {*executor_, costs_});
  later->restore(first->learnt().value());
  const auto plan = later->begin(text)();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->layers, first->learnt());
  // A file of another model is no use.
  const auto other = make_knapspec({.when = {.interval = 64, .share = 0.0}}, {*executor_, costs_});
  other->restore(LayerSet::none(3));
  EXPECT_FALSE(other->begin(text)());
}

TEST_F(IntervalSelectors, KnapSpecKeepsWhatIsBetterThanAllItFinds) {
  const WrittenText text(*executor_, 1.0f, 120);
  // One branch: it finds nothing but the whole model.
  const auto selector =
      make_knapspec({.when = {.interval = 1, .share = 1}, .branches = 1}, {*executor_, costs_});
  plan_after(*selector, text, 8);
  EXPECT_EQ(selector->learnt(), LayerSet::full(kPlantedLayers));
  selector->restore(test::without_planted());
  plan_after(*selector, text, 8);
  EXPECT_EQ(selector->learnt(), test::without_planted());
  // What is worse goes: without the first layer, at the price of nearly the whole model.
  LayerSet bad = LayerSet::full(kPlantedLayers);
  for (const int block : {0, 1}) bad.set(BlockId{block}, false);
  selector->restore(bad);
  plan_after(*selector, text, 8);
  EXPECT_EQ(selector->learnt(), LayerSet::full(kPlantedLayers));
}

TEST_F(IntervalSelectors, AttentionWeighsMoreBehindLongTexts) {
  Calibration costs = test::planted_costs();
  costs.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0.012}});
  EXPECT_EQ(block_weights(PassCosts(costs), 12, 0).attention_weight, 1);
  EXPECT_EQ(block_weights(PassCosts(costs), 12, 2000).attention_weight, 3);
  costs.blocks.mlp = 4;
  EXPECT_EQ(block_weights(PassCosts(costs), 12, 0).mlp_weight, 4);
  EXPECT_EQ(block_weights(PassCosts(costs), 12, 0).attention_weight, 1);
  EXPECT_EQ(block_weights(PassCosts(costs), 12, 3000).mlp_weight, 1);
}

// Layers both of whose blocks do nothing.
TEST_F(IntervalSelectors, ClaspFindsWholeLayers) {
  const WrittenText text(*executor_, 1.0f, 60);
  const auto selector = make_clasp({.when = kNoLimit, .skip = 4.0 / 12}, {*executor_, costs_});
  const auto plan = plan_after(*selector, text, 8);
  ASSERT_TRUE(plan.has_value());
  LayerSet expected = LayerSet::full(kPlantedLayers);
  for (const int layer : {2, 5, 7, 10}) {
    expected.set(attention_block(layer), false);
    expected.set(mlp_block(layer), false);
  }
  EXPECT_EQ(plan->layers, expected);
}

TEST_F(IntervalSelectors, DelLeavesTheModelEarlyOrNotAtAll) {
  const WrittenText text(*executor_, 1.0f, 60);
  const auto selector = make_del({.when = kNoLimit, .window = 16}, {*executor_, costs_});
  const auto plan = plan_after(*selector, text, 8);
  if (!plan) return;
  EXPECT_EQ(plan->layers, LayerSet::first_blocks(kPlantedLayers, plan->layers.n_running()));
  EXPECT_EQ(plan->layers.n_running() % 2, 0);
}

TEST_F(IntervalSelectors, DelLooksAtEveryTokenOnceIfItIsToldTo) {
  const WrittenText text(*executor_, 1.0f, 60);
  const auto selector =
      make_del({.when = {.interval = 1, .share = 1.0}, .window = 64}, {*executor_, costs_});
  GrowingText request(text, text.text().size() - 30);
  const auto chooser = selector->begin(request);
  for (int i = 0; i < 20; ++i) {
    const int64_t before = executor_->n_passes();
    chooser();
    EXPECT_EQ(executor_->n_passes() > before, i >= 6) << i;
    request.grow();
  }
  chooser();
  const int64_t before = executor_->n_passes();
  chooser();
  EXPECT_EQ(executor_->n_passes(), before) << "there is nothing new";
}

TEST_F(IntervalSelectors, LookingTakesItsShareOfTheTimeAtMost) {
  const WrittenText text(*executor_, 1.0f, 60);
  const auto selector = make_knapspec({.when = {.interval = 1, .share = 0.0}}, {*executor_, costs_});
  const int64_t before = executor_->n_passes();
  EXPECT_FALSE(plan_after(*selector, text, 100));
  EXPECT_EQ(executor_->n_passes(), before);
}

TEST_F(IntervalSelectors, AFullCacheIsNoError) {
  const WrittenText text(*executor_, 1.0f, 60);
  const SequenceId other = executor_->cells().create();
  while (executor_->cells().n_free() > 2) executor_->cells().extend(other);
  const auto knapspec = make_knapspec({.when = kNoLimit}, {*executor_, costs_});
  EXPECT_FALSE(plan_after(*knapspec, text, 20));
  const auto del = make_del({.when = kNoLimit}, {*executor_, costs_});
  EXPECT_FALSE(plan_after(*del, text, 20));
}

// By the formula: exit 2 of 10 is right with chance 3/4; the best length maximises
// E(n) / (10 + 2 n).
TEST(ExitCounts, ChooseTheMostTokensPerLayer) {
  ExitCounts counts(10, 1.0);
  for (int i = 0; i < 4; ++i) {
    for (int n_run = 1; n_run < 10; ++n_run) {
      const bool is_hit = n_run >= 2 && (i > 0 || n_run == 9);
      counts.add(n_run, is_hit, is_hit ? 0.9 : 0.3);
    }
  }
  const auto best = counts.best();
  ASSERT_TRUE(best);
  EXPECT_EQ(best->layers, LayerSet::first_blocks(10, 2 * 2));
  double rate = 0.1, expected = 1;
  int n_best = 0;
  for (int n = 1; n <= 17; ++n) {
    expected = 1 + 0.75 * expected;
    if (expected / (10 + 2 * n) > rate) {
      rate = expected / (10 + 2 * n);
      n_best = n;
    }
  }
  EXPECT_EQ(best->max_tokens, n_best);
  EXPECT_NEAR(best->threshold.value(), 0.6, 1e-9);
}

TEST(ExitCounts, ForgetAndDoNotDraftWithoutHits) {
  ExitCounts counts(10, 0.5);
  EXPECT_FALSE(counts.best());
  counts.add(3, true, 0.9);
  EXPECT_EQ(counts.best().value().layers, LayerSet::first_blocks(10, 2 * 3));
  EXPECT_EQ(counts.best()->threshold, 0) << "no misses to compare with";
  for (int i = 0; i < 20; ++i) {
    counts.fade();
    counts.add(3, false, 0.5);
  }
  EXPECT_FALSE(counts.best());
}

}  // namespace
}  // namespace forerun
