#include "draft/model/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "draft/model/draft_model_fixture.h"

namespace forerun {
namespace {

using test::WrittenText;

class DraftModelTest : public test::DraftModelFixture {
 protected:
  DraftModelDrafter drafter_{ChainOptions{.tokens = 6, .threshold = 0}, draft_};

  std::vector<TokenId> draft(RequestModelDrafter& request) {
    DraftTree tree;
    const auto plan = request.plan();
    if (!plan) return {};
    const ModelDraftJob job{
        .drafter = &request, .plan = *plan, .limits = {.max_nodes = 30, .max_depth = 12}, .tree = &tree};
    drafter_.draft({&job, 1});
    std::vector<TokenId> tokens;
    for (const DraftNode& node : tree.nodes()) tokens.push_back(node.token);
    return tokens;
  }
};

TEST_F(DraftModelTest, WithoutASlotThereIsNoPlan) {
  const WrittenText text = text_behind(3);
  const auto first = drafter_.begin(text), second = drafter_.begin(text);
  const auto third = drafter_.begin(text);
  EXPECT_EQ(draft(*second).size(), 6u);
  EXPECT_FALSE(third->plan());
}

TEST_F(DraftModelTest, ChainsEndBehindWhatEndsTheAnswer) {
  WrittenText text = text_behind(3);
  const auto request = drafter_.begin(text);
  std::vector<TokenId> tokens = draft(*request);
  ASSERT_EQ(tokens.size(), 6u);
  text.set_end(tokens[2]);
  tokens.erase(std::ranges::find(tokens, tokens[2]) + 1, tokens.end());
  EXPECT_EQ(draft(*request), tokens);
}

TEST_F(DraftModelTest, WhatIsUnreadTakesTime) {
  const WrittenText text = text_behind(100);
  const auto request = drafter_.begin(text);
  EXPECT_GT(request->seconds_to_read(), 100);
  draft(*request);
  EXPECT_EQ(request->seconds_to_read(), 0);
}

TEST_F(DraftModelTest, AnswersAreAsLongAsTheyUsuallyAre) {
  WrittenText text = text_behind(3);
  const auto request = drafter_.begin(text);
  const double first = request->n_expected();
  for (int i = 0; i < 20; ++i) drafter_.begin(text)->finish();
  EXPECT_LT(request->n_expected(), first / 4);
  text.set_n_left(1);
  EXPECT_EQ(request->n_expected(), 1);
}

}  // namespace
}  // namespace forerun
