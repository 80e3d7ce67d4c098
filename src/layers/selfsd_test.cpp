#include "layers/selfsd.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "layers/layer_file.h"
#include "layers/planted_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

// The rule as the paper's program has it, for one draft.
double published(double threshold, double& accepted, const ChainOutcome& outcome) {
  accepted = 0.5 * accepted + 0.5 * outcome.n_agreed / outcome.n_drafted;
  const double wanted = accepted < 0.9        ? threshold + 0.01
                        : !outcome.is_longest ? threshold - 0.01
                                              : threshold;
  return 0.9 * threshold + 0.1 * wanted;
}

TEST(AdaptiveThreshold, FollowsThePublishedRule) {
  AdaptiveThreshold threshold(0.6);
  double expected = 0.6, accepted = 0;
  for (int i = 0; i < 200; ++i) {
    const int n_drafted = 1 + i % 12;
    const ChainOutcome outcome{.n_tested = n_drafted,
                               .n_agreed = i % 3 == 0 ? n_drafted / 2 : n_drafted,
                               .n_drafted = n_drafted,
                               .is_longest = n_drafted == 12};
    threshold.observe(outcome);
    expected = published(expected, accepted, outcome);
    ASSERT_NEAR(threshold.value(), expected, 1e-12) << i;
  }
}

TEST(AdaptiveThreshold, MovesTheRightWay) {
  AdaptiveThreshold bad(0.6), good(0.6), full(0.6);
  for (int i = 0; i < 20; ++i) {
    bad.observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 4});
    good.observe({.n_tested = 4, .n_agreed = 4, .n_drafted = 4});
    full.observe({.n_tested = 12, .n_agreed = 12, .n_drafted = 12, .is_longest = true});
  }
  EXPECT_NEAR(bad.value(), 0.62, 1e-9) << "0.001 a draft";
  EXPECT_LT(good.value(), 0.6);
  EXPECT_LT(full.value(), bad.value());
  EXPECT_GT(full.value(), good.value()) << "longer drafts there are none";
}

TEST(AdaptiveThreshold, StaysAProbability) {
  AdaptiveThreshold bad(0.999), good(0.0);
  for (int i = 0; i < 2000; ++i) {
    bad.observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 2});
    good.observe({.n_tested = 2, .n_agreed = 2, .n_drafted = 2});
    bad.observe({});
  }
  EXPECT_EQ(bad.value(), 1.0);
  EXPECT_GE(good.value(), 0.0);
}

class SelfSdTest : public test::PlantedTest {
 protected:
  std::string layer_file(const LayerSet& layers) {
    const auto path = files_.file("layers.json");
    LayerFile{.model = model_->fingerprint(), .layers = layers, .found = {}}.save(path);
    return path.string();
  }
  test::TempDir files_;
};

TEST_F(SelfSdTest, DraftsWithTheLayersOfTheFile) {
  const test::WrittenText text(*executor_, 0.0f, 4);
  SelfSdSelector selector({.layers = layer_file(test::without_planted())}, *model_, 0.7);
  const auto first = selector.begin(text);
  ASSERT_TRUE(first->plan().has_value());
  EXPECT_EQ(first->plan()->layers, test::without_planted());
  EXPECT_EQ(first->plan()->threshold, 0.7);
  first->observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 3});
  EXPECT_NEAR(selector.begin(text)->plan()->threshold.value(), 0.701, 1e-9) << "what was learnt stays";
  SelfSdSelector fixed({.layers = layer_file(test::without_planted()), .adapt = false}, *model_, 0.7);
  EXPECT_EQ(fixed.begin(text)->plan()->threshold, std::nullopt) << "the drafter's own";
}

TEST_F(SelfSdTest, DoesNotDraftWithTheWholeModel) {
  const test::WrittenText text(*executor_, 0.0f, 4);
  SelfSdSelector selector({.layers = layer_file(LayerSet::full(test::kPlantedLayers))}, *model_, 0.7);
  EXPECT_FALSE(selector.begin(text)->plan().has_value());
}

TEST_F(SelfSdTest, NeedsAFileForThisModel) {
  const auto message_of = [&](const SelfSdOptions& options) {
    try {
      SelfSdSelector(options, *model_, 0.7);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(message_of({}).find("forerun layers search"), std::string::npos);
  EXPECT_NE(message_of({.layers = "/none.json"}).find("forerun layers search"), std::string::npos);
  const auto path = files_.file("other.json");
  LayerFile{.model = 1, .layers = test::without_planted(), .found = {}}.save(path);
  EXPECT_NE(message_of({.layers = path.string()}).find("another model"), std::string::npos);
}

}  // namespace
}  // namespace forerun
