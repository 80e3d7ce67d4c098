#include "draft/draft_model.h"

#include <gtest/gtest.h>

#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::WrittenText;

// The model drafts for its own text: all it drafts is right.
class DraftModelReading : public test::PlantedTest {
 protected:
  DraftModelReading() {
    draft_->model = model_;
    draft_->executor =
        std::make_unique<Executor>(model_, ExecutorOptions{.kv = {.n_cells = 1024}, .max_rows = 128});
    draft_->n_slots = 2;
    draft_->n_context = 512;
    draft_->costs = [this]() -> const Calibration& { return draft_costs_; };
    const DraftCost cost = draft_model_cost(*draft_);
    method_ = std::make_unique<DraftModelMethod>(
        ChainOptions{.tokens = 6, .threshold = 0}, draft_,
        DraftControl{.cost = cost, .gate = std::make_unique<DraftGate>(costs_, cost)});
  }

  // Tokens that are drafted behind the text.
  static int n_drafted(Drafter& drafter) {
    DraftTree tree;
    drafter.draft({.max_nodes = 30, .max_depth = 12}, tree);
    return tree.size();
  }
  std::unique_ptr<Drafter> begin(const RequestView& request) {
    auto drafter = method_->begin(request.text().first(request.n_prompt()));
    drafter->attach(request);
    return drafter;
  }
  // A short text, and what is drafted behind it taken for right.
  void show_itself() {
    const auto drafter = begin(text_of_two_);
    for (int i = 0; i < 10; ++i) {
      DraftTree tree;
      drafter->draft({.max_nodes = 30, .max_depth = 12}, tree);
      std::vector<TokenId> tokens;
      for (const DraftNode& node : tree.nodes()) tokens.push_back(node.token);
      drafter->append(tokens);
    }
  }
  WrittenText text_behind(size_t n_prompt) {
    std::vector<TokenId> prompt;
    for (size_t i = 0; i < n_prompt; ++i) prompt.push_back(TokenId{1 + static_cast<int>(i * 37 % 290)});
    return WrittenText(*executor_, 0.0f, 2, prompt);
  }

  // Not measured but given: a token of the draft takes the tenth part of a step, 64 of the text as
  // much as six steps.
  const Calibration draft_costs_{
      .curve = CostCurve({{.n_rows = 1, .seconds = 2.6, .seconds_per_token = 0},
                          {.n_rows = 64, .seconds = 166, .seconds_per_token = 0}}),
      .blocks = {}};
  std::shared_ptr<DraftModel> draft_ = std::make_shared<DraftModel>();
  std::unique_ptr<DraftModelMethod> method_;
  const WrittenText text_of_two_ = text_behind(3);  // tokens
};

TEST_F(DraftModelReading, ALongTextIsNotReadForAModelThatNothingIsKnownOf) {
  const WrittenText text = text_behind(100);
  const auto drafter = begin(text);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(n_drafted(*drafter), 0);
  EXPECT_EQ(draft_->executor->n_passes(), 0);
  EXPECT_EQ(drafter->expected_rate(1), 0) << "nobody is to stand back for it";
}

TEST_F(DraftModelReading, ItIsReadForOneThatHasShownItself) {
  show_itself();
  const WrittenText text = text_behind(100);
  EXPECT_GT(n_drafted(*begin(text)), 1);
}

TEST_F(DraftModelReading, ItIsNotReadForTheLastFewTokens) {
  show_itself();
  WrittenText text = text_behind(100);
  text.set_n_left(10);
  EXPECT_EQ(n_drafted(*begin(text)), 0);
  text.set_n_left(1000);
  EXPECT_GT(n_drafted(*begin(text)), 1);
}

TEST_F(DraftModelReading, ItIsNotReadWhereAnswersAreShort) {
  show_itself();
  const WrittenText text = text_behind(100);
  for (int i = 0; i < 20; ++i) begin(text_of_two_)->finish();
  EXPECT_EQ(n_drafted(*begin(text)), 0);
}

TEST_F(DraftModelReading, WithoutASlotItPromisesNothing) {
  const auto first = begin(text_of_two_), second = begin(text_of_two_), third = begin(text_of_two_);
  EXPECT_GT(n_drafted(*second), 0);
  EXPECT_EQ(n_drafted(*third), 0);
  EXPECT_GT(second->expected_rate(1), 0);
  EXPECT_EQ(third->expected_rate(1), 0);
}

}  // namespace
}  // namespace forerun
