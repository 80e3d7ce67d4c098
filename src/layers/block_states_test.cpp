#include "layers/block_states.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "layers/agreement.h"
#include "layers/layer_selector.h"
#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::kPlantedLayers;
using test::WrittenText;
using BlockStatesTest = test::PlantedTest;

constexpr size_t kTokens = 5;

TEST_F(BlockStatesTest, BlocksOneByOneAreTheModel) {
  const WrittenText text(*executor_, 1.0f, 60);
  const int n_free = executor_->cells().n_free();
  for (const size_t end : {size_t{30}, text.text().size()}) {
    TextBlockStates states(*executor_, text, end, kTokens);
    const auto first = states.full(0);
    std::vector<float> branch(first.begin(), first.end());
    for (int block = 0; block < 2 * kPlantedLayers; ++block) {
      states.run(BlockId{block}, branch);
      const auto full = states.full(block + 1);
      ASSERT_TRUE(std::equal(branch.begin(), branch.end(), full.begin())) << "behind block " << block;
    }
    EXPECT_EQ(states.agreement(branch), std::vector<double>{1.0});
  }
  EXPECT_EQ(executor_->cells().n_free(), n_free);
}

// Branches of one pass must not see each other, and more of them than fit into one must do.
TEST_F(BlockStatesTest, BranchesAreApart) {
  const WrittenText text(*executor_, 1.0f, 60);
  const LayerSet layers = uniform_layers(kPlantedLayers, 0.3);
  const auto run_all = [&](std::vector<float>& branches) {
    TextBlockStates states(*executor_, text, 50, kTokens);
    for (int block = 0; block < 2 * kPlantedLayers; ++block) {
      if (layers.runs(BlockId{block})) states.run(BlockId{block}, branches);
    }
    return states.agreement(branches);
  };
  const TextBlockStates states(*executor_, text, 50, kTokens);
  const auto first = states.full(0);
  std::vector<float> alone(first.begin(), first.end());
  const std::vector<double> agreement = run_all(alone);
  const AgreementWindow window{.request = &text, .end = 50, .n = kTokens};
  // A sum of fifths in one, a quotient in the other.
  EXPECT_DOUBLE_EQ(agreement[0], measured_agreement(*executor_, layers, {&window, 1}).value());

  std::vector<float> many;
  for (int i = 0; i < 40; ++i) {  // 200 rows; a pass has at most 128
    const auto other = states.full(i % 2 == 0 ? 0 : i % (2 * kPlantedLayers));
    many.insert(many.end(), other.begin(), other.end());
  }
  const std::vector<double> all = run_all(many);
  ASSERT_EQ(all.size(), 40u);
  for (size_t i = 0; i < 40; i += 2) {
    EXPECT_EQ(all[i], agreement[0]);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(),
                           many.begin() + static_cast<ptrdiff_t>(i * states.branch_size())));
  }
}

TEST_F(BlockStatesTest, NoRoomIsAnError) {
  const WrittenText text(*executor_, 1.0f, 60);
  const SequenceId other = executor_->cells().create();
  while (executor_->cells().n_free() > 4) executor_->cells().extend(other);
  EXPECT_THROW(TextBlockStates(*executor_, text, 50, kTokens), Error);
  EXPECT_EQ(executor_->cells().n_free(), 4);
}

TEST(MeanCosine, IsTheMeanOverTokens) {
  const std::vector<float> a = {1, 0, 0, 2};
  const std::vector<float> b = {3, 0, 1, 0};
  EXPECT_DOUBLE_EQ(mean_cosine(a, b, 2), 0.5);
  EXPECT_DOUBLE_EQ(mean_cosine(a, a, 2), 1.0);
  EXPECT_DOUBLE_EQ(mean_cosine(a, std::vector<float>{0, 0, 0, 1}, 2), 0.5) << "nothing is like nothing";
}

}  // namespace
}  // namespace forerun
