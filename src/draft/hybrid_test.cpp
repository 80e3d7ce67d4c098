#include "draft/hybrid.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/test_tokens.h"
#include "draft/scripted_method.h"

namespace forerun {
namespace {

using test::Script;
using test::ScriptedMethod;
using test::ShortText;

class HybridTest : public ::testing::Test {
 protected:
  void begin() {
    method_ = std::make_unique<HybridMethod>(std::make_unique<ScriptedMethod>(texts_),
                                             std::make_unique<ScriptedMethod>(model_), costs_);
    drafter_ = method_->begin(request_.text());
    drafter_->attach(request_);
  }
  DraftTree draft(int max_nodes = 48) {
    DraftTree tree;
    drafter_->draft({.max_nodes = max_nodes, .max_depth = 10}, tree);
    return tree;
  }

  const Calibration costs_{.curve = CostCurve({{.n_rows = 1, .seconds = 0.1, .seconds_per_token = 0},
                                               {.n_rows = 32, .seconds = 0.2, .seconds_per_token = 0}}),
                           .blocks = {}};
  Script texts_{.chains = {{5, 6, 7}}};
  Script model_{.chains = {{5, 8}}, .source = DraftSource::kModel};
  ShortText request_;
  std::unique_ptr<HybridMethod> method_;
  std::unique_ptr<Drafter> drafter_;
};

TEST_F(HybridTest, LaysBothTreesOverEachOther) {
  begin();
  const DraftTree tree = draft();
  ASSERT_EQ(tree.size(), 4);
  const int32_t shared = tree.find_child(kRoot, TokenId{5}).value();
  EXPECT_EQ(tree[shared].proposers, 0b101) << "both propose it";
  EXPECT_EQ(tree[shared].source, DraftSource::kInput);
  EXPECT_EQ(tree[tree.find_child(shared, TokenId{6}).value()].proposers, 0b001);
  EXPECT_EQ(tree[tree.find_child(shared, TokenId{8}).value()].proposers, 0b100);
}

TEST_F(HybridTest, KeepsToTheLimits) {
  texts_.chains = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {11, 12, 13, 14, 15}};
  model_.chains = {{21, 22, 23, 24, 25, 26, 27, 28}};
  begin();
  for (const int max_nodes : {1, 2, 7, 12}) EXPECT_EQ(draft(max_nodes).size(), max_nodes);
  EXPECT_TRUE(draft(4).find_child(kRoot, TokenId{21})) << "the model has its share of nodes";
}

TEST_F(HybridTest, TellsTheModelWhatTextsAreWorth) {
  begin();
  draft();
  const double at_first = model_.jobs.back().rival_rate;
  for (int i = 0; i < 60; ++i) {
    draft();
    drafter_->append(ids({5, 6, 7, 9}));
  }
  draft();
  const double after_hits = model_.jobs.back().rival_rate;
  EXPECT_GT(after_hits, 1.5 * at_first);
  EXPECT_LT(after_hits, 40) << "four tokens for a pass of four rows";
  for (int i = 0; i < 200; ++i) {
    draft();
    drafter_->append(ids({9}));
  }
  draft();
  EXPECT_NEAR(model_.jobs.back().rival_rate, 10, 1) << "that of plain decoding";
}

TEST_F(HybridTest, TellsTheModelWhatTextsPropose) {
  begin();
  for (int i = 0; i < 60; ++i) {
    draft();
    drafter_->append(ids({5, 6, 9}));
  }
  DraftTree tree;
  drafter_->draft({.max_nodes = 48, .max_depth = 10}, tree);
  const DraftJob& job = model_.jobs.back();
  ASSERT_EQ(job.hint, &tree);
  ASSERT_EQ(job.hint_chances.size(), 3u);
  EXPECT_GT(job.hint_chances[1], 0.7) << "the text took it every time";
  EXPECT_LT(job.hint_chances[2], 0.3);
}

TEST_F(HybridTest, DrawnTokensStandAlone) {
  model_.draws = true;
  begin();
  const DraftTree tree = draft();
  EXPECT_TRUE(tree.has_distributions());
  EXPECT_EQ(tree.size(), 2);
}

}  // namespace
}  // namespace forerun
