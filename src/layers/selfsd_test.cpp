#include "layers/selfsd.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "layers/layer_file.h"
#include "layers/planted_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

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
  const auto selector =
      make_selfsd({.layers = layer_file(test::without_planted())}, {*executor_, costs_, 0.7});
  const auto first = selector->begin(text);
  ASSERT_TRUE(first().has_value());
  EXPECT_EQ(first()->layers, test::without_planted());
  EXPECT_EQ(first()->threshold, 0.7);
  selector->observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 3});
  EXPECT_NEAR(selector->begin(text)()->threshold.value(), 0.701, 1e-9) << "what was learnt stays";
  const auto fixed = make_selfsd({.layers = layer_file(test::without_planted()), .adapt = false},
                                 {*executor_, costs_, 0.7});
  EXPECT_EQ(fixed->begin(text)()->threshold, std::nullopt) << "the drafter's own";
}

TEST_F(SelfSdTest, DoesNotDraftWithTheWholeModel) {
  const test::WrittenText text(*executor_, 0.0f, 4);
  const auto selector = make_selfsd({.layers = layer_file(LayerSet::full(test::kPlantedLayers))},
                                    {*executor_, costs_, 0.7});
  EXPECT_FALSE(selector->begin(text)().has_value());
}

TEST_F(SelfSdTest, NeedsAFileForThisModel) {
  const auto message_of = [&](const SelfSdOptions& options) {
    try {
      make_selfsd(options, {*executor_, costs_, 0.7});
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
