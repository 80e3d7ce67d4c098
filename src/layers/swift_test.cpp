// Searches on a small model some of whose blocks do nothing: which, they must find out.
#include "layers/swift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "budget/draft_value.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

constexpr int kLayers = 12;
// Blocks whose output is nothing, at irregular places; not in the first and last layer.
const std::vector<int> kPlanted = {3, 4, 5, 7, 9, 10, 11, 14, 15, 16, 18, 20, 21};

bool is_planted(int block) {
  return std::find(kPlanted.begin(), kPlanted.end(), block) != kPlanted.end();
}

test::GgufBuilder planted_model() {
  const test::TinyModelSpec spec{.n_layers = kLayers, .n_vocab = 300};
  test::GgufBuilder builder = test::tiny_model(spec);
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.0f, 0.5f);  // enough to matter
  for (int block = 0; block < 2 * kLayers; ++block) {
    const bool is_attention = block % 2 == 0;
    const int n_in = is_attention ? spec.n_heads * spec.head_dim : spec.n_ff;
    std::vector<float> weights(static_cast<size_t>(n_in * spec.n_embd), 0.0f);
    if (!is_planted(block))
      std::generate(weights.begin(), weights.end(), [&] { return normal(random); });
    const char* name = is_attention ? ".attn_output.weight" : ".ffn_down.weight";
    builder.add_floats("blk." + std::to_string(block / 2) + name, {n_in, spec.n_embd}, weights);
  }
  return builder;
}

// A text that the model itself wrote, its last token not yet read.
class WrittenText final : public RequestView {
 public:
  WrittenText(Executor& executor, float temperature, int n_tokens)
      : sampler_(options(temperature), executor.model().config().n_vocab),
        sequence_(executor.cells().create()) {
    text_ = {TokenId{1}, TokenId{7}, TokenId{13}};
    for (int i = 0; i < n_tokens; ++i) {
      const auto n_read = static_cast<size_t>(executor.cells().n_committed(sequence_));
      const auto logits = executor.read(sequence_, std::span(text_).subspan(n_read)).value();
      text_.push_back(
          sampler_.sample(logits, state_, Position{static_cast<int32_t>(text_.size())}, scratch_));
    }
  }
  std::span<const TokenId> text() const override { return text_; }
  SequenceId sequence() const override { return sequence_; }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return state_; }
  bool compares_distributions() const override { return false; }

 private:
  static SamplingOptions options(float temperature) {
    SamplingOptions options;
    options.temperature = temperature;
    options.top_k = 0;
    options.top_p = 1;
    options.min_p = 0;
    options.seed = 4;
    return options;
  }

  Sampler sampler_;
  SamplerState state_;
  SamplerScratch scratch_;
  SequenceId sequence_;
  std::vector<TokenId> text_;
};

class SwiftTest : public ::testing::Test {
 protected:
  SwiftTest() {
    planted_model().write(folder_.file("model.gguf"));
    model_ = Model::load(GgufFile::open(folder_.file("model.gguf")),
                         Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false}));
    executor_ =
        std::make_unique<Executor>(model_, ExecutorOptions{.kv = {.n_cells = 512}, .max_rows = 128});
  }
  static LayerSet without_planted() {
    LayerSet layers = LayerSet::full(kLayers);
    for (const int block : kPlanted) layers.set(BlockId{block}, false);
    return layers;
  }
  // Calls for layers until the search is over.
  static void search(SwiftSelector& selector, const RequestView& request) {
    const auto chooser = selector.begin(request);
    for (int i = 0; i < 5000 && !selector.search().ended(); ++i) chooser->plan();
  }

  test::TempDir folder_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  // A row costs little beside a pass, so that long drafts pay.
  const Calibration costs_{.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                                               {.n_rows = 64, .seconds = 40, .seconds_per_token = 0}}),
                           .blocks = {.attention = 1, .mlp = 1, .rest = 2}};
};

TEST_F(SwiftTest, AgreementIsThatOfTheLayers) {
  for (const float temperature : {0.0f, 1.0f}) {
    const WrittenText text(*executor_, temperature, 120);
    const int n_free = executor_->cells().n_free();
    AgreementProbe probe(*executor_);
    for (const size_t end : {size_t{60}, text.text().size()}) {
      EXPECT_EQ(probe.measure(text, LayerSet::full(kLayers), end, 32), 1.0);
      EXPECT_EQ(probe.measure(text, without_planted(), end, 32), 1.0);
      EXPECT_LT(probe.measure(text, uniform_layers(kLayers, 0.5), end, 32).value(), 0.7);
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

TEST_F(SwiftTest, AgreementNeedsRoom) {
  const WrittenText text(*executor_, 1.0f, 100);
  const SequenceId other = executor_->cells().create();
  while (executor_->cells().n_free() > 20) executor_->cells().extend(other);
  AgreementProbe probe(*executor_);
  EXPECT_EQ(probe.measure(text, LayerSet::full(kLayers), 100, 32), std::nullopt);
  EXPECT_EQ(executor_->cells().n_free(), 20);
}

TEST_F(SwiftTest, FindsWhatIsPlanted) {
  const WrittenText text(*executor_, 1.0f, 200);
  SwiftOptions options;
  options.share = 1.0;
  options.window = 64;
  SwiftSelector selector(options, *executor_, costs_);
  search(selector, text);
  const auto best = selector.best();
  ASSERT_TRUE(best.has_value());
  // What both are worth on text that no candidate was tried on: blocks that hardly matter here
  // may go as well.
  AgreementProbe probe(*executor_);
  const auto value = [&](const LayerSet& layers) {
    const double agreement = probe.measure(text, layers, 70, 64).value();
    return best_draft(costs_, agreement, draft_seconds(costs_, layers, 0), 0).tokens_per_second;
  };
  EXPECT_GE(value(*best), 0.95 * value(without_planted()));
  EXPECT_GT(value(*best), 1.3 * value(LayerSet::full(kLayers)));
  EXPECT_LE(selector.search().n_scores(), 1000);
}

TEST_F(SwiftTest, AsPublishedEverySetHasTheSameSize) {
  const WrittenText text(*executor_, 1.0f, 120);
  SwiftOptions options;
  options.search = "published";
  options.share = 1.0;
  options.skip = 0.25;
  options.max_candidates = 60;
  SwiftSelector selector(options, *executor_, costs_);
  const auto chooser = selector.begin(text);
  double best = 0;
  for (int i = 0; i < 60; ++i) {
    const auto plan = chooser->plan();
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->layers.n_blocks() - plan->layers.n_running(), 6);
    EXPECT_GE(selector.search().best()->score, best) << "never worse";
    best = selector.search().best()->score;
  }
  EXPECT_LE(best, 1.0);
}

TEST_F(SwiftTest, DoesNotDraftWhereItCannotPay) {
  const WrittenText text(*executor_, 1.0f, 120);
  Calibration dear = costs_;  // every row costs a pass
  dear.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                          {.n_rows = 2, .seconds = 52, .seconds_per_token = 0}});
  SwiftOptions options;
  options.share = 1.0;
  options.max_candidates = 100;
  SwiftSelector selector(options, *executor_, dear);
  search(selector, text);
  EXPECT_EQ(selector.best(), std::nullopt);
}

TEST_F(SwiftTest, TakesNoMoreTimeThanItsShare) {
  const WrittenText text(*executor_, 1.0f, 120);
  SwiftOptions options;
  options.share = 0.0;
  SwiftSelector selector(options, *executor_, costs_);
  const auto chooser = selector.begin(text);
  for (int i = 0; i < 50; ++i) chooser->plan();
  EXPECT_EQ(selector.search().n_scores(), 1) << "the first alone, to have any";
  const WrittenText brief(*executor_, 1.0f, 10);
  SwiftSelector other(options, *executor_, costs_);
  EXPECT_FALSE(other.begin(brief)->plan()) << "too little text to try anything on";
}

}  // namespace
}  // namespace forerun
