#include "draft/model/layer_skipping.h"

#include <gtest/gtest.h>

#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::WrittenText;

class LayerSkippingHints : public test::PlantedTest {
 protected:
  struct Drafted {
    std::vector<TokenId> chain;
    int64_t n_passes;
  };

  // A chain with the planted blocks left out, `hint` at hand.
  Drafted draft(const RequestView& request, const DraftTree* hint = nullptr) {
    PassCosts costs(kCosts, PassCosts::Known::kGiven);
    LayerSkippingDrafter method({.tokens = 12, .threshold = 0}, *executor_, costs,
                                std::make_unique<FixedLayers>(test::without_planted()));
    const auto drafter = method.begin(request);
    const std::vector<double> chances(hint != nullptr ? static_cast<size_t>(hint->size()) : 0, 0.99);
    DraftTree tree;
    const ModelDraftJob job{.drafter = drafter.get(),
                            .plan = drafter->plan().value(),
                            .limits = {.max_nodes = 30, .max_depth = 12},
                            .tree = &tree,
                            .hint = hint,
                            .hint_chances = chances};
    const int64_t before = executor_->n_passes();
    method.draft({&job, 1});
    EXPECT_EQ(executor_->cells().n_scratch(request.sequence()), 0);
    Drafted drafted{.chain = {}, .n_passes = executor_->n_passes() - before};
    for (const DraftNode& node : tree.nodes()) drafted.chain.push_back(node.token);
    return drafted;
  }
  static DraftTree path(std::span<const TokenId> tokens) {
    DraftTree tree;
    int32_t at = kRoot;
    for (const TokenId token : tokens) at = tree.add({.token = token, .parent = at, .score = 0.99f});
    return tree;
  }

  // Rows cost next to nothing, so that as many are read ahead as there are.
  static inline const Calibration kCosts{
      .curve = CostCurve({{.n_rows = 1, .seconds = 1, .seconds_per_token = 0},
                          {.n_rows = 32, .seconds = 1.01, .seconds_per_token = 0}}),
      .blocks = {.attention = 0.001, .mlp = 0.001, .rest = 0}};
};

TEST_F(LayerSkippingHints, ChainsAreTheSameInFewerPasses) {
  for (const float temperature : {0.0f, 1.0f}) {
    const WrittenText text(*executor_, temperature, 40);
    const Drafted alone = draft(text);
    ASSERT_EQ(alone.chain.size(), 12u);
    EXPECT_EQ(alone.n_passes, 12);

    const DraftTree right = path(alone.chain);
    EXPECT_EQ(draft(text, &right).chain, alone.chain);
    EXPECT_EQ(draft(text, &right).n_passes, 1);

    // Wrong from the fifth token on: no use behind it, and no harm.
    std::vector<TokenId> tokens = alone.chain;
    tokens[4] = TokenId{to_int(tokens[4]) == 7 ? 8 : 7};
    DraftTree wrong = path(tokens);
    EXPECT_EQ(draft(text, &wrong).chain, alone.chain);
    EXPECT_EQ(draft(text, &wrong).n_passes, 8);

    // The right token beside the wrong one leads back.
    int32_t at = wrong.add({.token = alone.chain[4], .parent = 3, .score = 0.5f});
    for (size_t i = 5; i < alone.chain.size(); ++i) {
      at = wrong.add({.token = alone.chain[i], .parent = at, .score = 0.5f});
    }
    EXPECT_EQ(draft(text, &wrong).chain, alone.chain);
    EXPECT_EQ(draft(text, &wrong).n_passes, 2);
  }
}

TEST_F(LayerSkippingHints, AreLeftWhereThereIsNoRoom) {
  const WrittenText text(*executor_, 1.0f, 40);
  const Drafted alone = draft(text);
  const SequenceId other = executor_->cells().create();
  while (executor_->cells().n_free() > 3) executor_->cells().extend(other);
  const DraftTree right = path(alone.chain);
  const Drafted cut = draft(text, &right);
  EXPECT_EQ(cut.chain.size(), 3u);
  EXPECT_TRUE(std::equal(cut.chain.begin(), cut.chain.end(), alone.chain.begin()));
}

}  // namespace
}  // namespace forerun
