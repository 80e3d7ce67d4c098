#include "plan/cost_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "plan/own_planner.h"
#include "plan/roofline.h"
#include "plan/scripted_drafter.h"

namespace forerun {
namespace {

using test::Script;
using test::ShortText;

// Rows up to 8 are nearly free, then each costs as much as a pass.
PassCosts cheap_until_8() {
  return PassCosts({.curve = CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                                        {.n_rows = 8, .seconds = 1.2, .seconds_per_token = 0},
                                        {.n_rows = 9, .seconds = 2.2, .seconds_per_token = 0},
                                        {.n_rows = 64, .seconds = 57.2, .seconds_per_token = 0}}),
                    .blocks = {}});
}
// Every row costs a pass: nothing can be gained.
PassCosts never_free() {
  return PassCosts({.curve = CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                                        {.n_rows = 64, .seconds = 64.0, .seconds_per_token = 0}}),
                    .blocks = {}});
}

// Of passes that take a millisecond.
PassCosts quick_until_8() {
  return PassCosts({.curve = CostCurve({{.n_rows = 1, .seconds = 1.0e-3, .seconds_per_token = 0},
                                        {.n_rows = 8, .seconds = 1.2e-3, .seconds_per_token = 0},
                                        {.n_rows = 9, .seconds = 2.2e-3, .seconds_per_token = 0}}),
                    .blocks = {}});
}

std::vector<int> counting(int n) {
  std::vector<int> tokens;
  for (int i = 1; i <= n; ++i) tokens.push_back(i);
  return tokens;
}

class CostPlannerTest : public ::testing::Test {
 protected:
  // A planner whose text drafters propose what the scripts say.
  CostPlanner& planner(const PassCosts& costs, std::vector<Script*> scripts) {
    costs_ = std::make_unique<PassCosts>(costs);
    planner_ = std::make_unique<CostPlanner>(
        test::scripted(scripts), *costs_, [](int) { return kLargestTree; }, one_after_other,
        test::scripted_time);
    return *planner_;
  }

  DraftTree plan(RequestPlan& request, const PassLoad& load = {.n_decoding = 1, .n_prompt_rows = 0}) {
    DraftTree tree;
    const PlanJob job{.request = &request, .limits = {.max_nodes = 100, .max_depth = 64}, .tree = &tree};
    planner_->plan({&job, 1}, load);
    return tree;
  }
  // The pass over `tree` is done: its nodes are right, or none of them.
  void finish(RequestPlan& request, const DraftTree& tree, bool right, double draft_seconds = 0) {
    planner_->observe({.load = {.n_decoding = 1, .n_prompt_rows = 0},
                       .n_rows = 1 + tree.size(),
                       .n_context = 3,
                       .draft_seconds = draft_seconds});
    std::vector<TokenId> tokens;
    for (int32_t i = 0; right && i < tree.size(); ++i) tokens.push_back(tree[i].token);
    tokens.push_back(right ? TokenId{tree.size() + 1} : TokenId{999});
    planner_->append(request, tokens);
  }
  // How many nodes the last of `n` passes verified.
  int verified_after(RequestPlan& request, int n, bool right) {
    int n_verified = 0;
    for (int i = 0; i < n; ++i) {
      const DraftTree tree = plan(request);
      n_verified = tree.size();
      finish(request, tree, right);
    }
    return n_verified;
  }

  ShortText text_;
  std::unique_ptr<PassCosts> costs_;
  std::unique_ptr<CostPlanner> planner_;
};

TEST_F(CostPlannerTest, VerifiesWhatIsFree) {
  Script script{.chains = {counting(20)}};
  const auto request = planner(cheap_until_8(), {&script}).begin(text_);
  EXPECT_EQ(verified_after(*request, 60, /*right=*/true), 7) << "eight rows with the text's own";
}

TEST_F(CostPlannerTest, VerifiesNothingFromTheAnswersEndOn) {
  Script script{.chains = {counting(5)}};
  text_.set_end(TokenId{4});
  const auto request = planner(cheap_until_8(), {&script}).begin(text_);
  EXPECT_EQ(verified_after(*request, 60, /*right=*/true), 3) << "that a pass tells without a row for it";
}

TEST_F(CostPlannerTest, VerifiesNothingThatDoesNotPayAndComesBack) {
  Script script{.chains = {counting(20)}};
  auto request = planner(never_free(), {&script}).begin(text_);
  EXPECT_EQ(verified_after(*request, 20, /*right=*/true), 0);
  request = planner(cheap_until_8(), {&script}).begin(text_);
  EXPECT_EQ(verified_after(*request, 200, /*right=*/false), 0);
  const int n_drafts = script.n_drafts;
  EXPECT_EQ(verified_after(*request, 100, /*right=*/false), 0);
  EXPECT_EQ(script.n_drafts, n_drafts + 100) << "looking texts up costs next to nothing";
  // What was not verified is compared with the text all the same.
  for (int i = 0; i < 400; ++i) {
    const DraftTree tree = plan(*request);
    planner_->observe({.load = {.n_decoding = 1, .n_prompt_rows = 0},
                       .n_rows = 1 + tree.size(),
                       .n_context = 3,
                       .draft_seconds = 0});
    std::vector<TokenId> tokens;
    for (const int token : counting(tree.size() + 1)) tokens.push_back(TokenId{token});
    planner_->append(*request, tokens);
  }
  EXPECT_EQ(plan(*request).size(), 7);
}

// Some lookups are held up by what else the machine does; all together are a small part of the time.
TEST_F(CostPlannerTest, LookingTextsUpIsNotGivenUpForLookupsThatWereHeldUp) {
  Script script{.chains = {counting(20)}};
  const auto request = planner(cheap_until_8(), {&script}).begin(text_);
  for (int i = 1; i <= 600; ++i) {
    script.seconds = i % 10 == 0 ? 0.025 : 0;
    finish(*request, plan(*request), /*right=*/false, script.seconds);
  }
  EXPECT_EQ(script.n_drafts, 600);
}

TEST_F(CostPlannerTest, LookingTextsUpIsGivenUpWhereItTakesMostOfTheTimeForNothing) {
  Script script{.chains = {counting(20)}, .seconds = 1e-4};
  const PassCosts quick({.curve = CostCurve({{.n_rows = 1, .seconds = 1e-4, .seconds_per_token = 0},
                                             {.n_rows = 64, .seconds = 64e-4, .seconds_per_token = 0}}),
                         .blocks = {}});
  const auto request = planner(quick, {&script}).begin(text_);
  for (int i = 0; i < 1000; ++i)
    finish(*request, plan(*request), /*right=*/false, script.has_drafted ? script.seconds : 0);
  EXPECT_LT(script.n_drafts, 300);
}

// The text at hand is looked up however long datastores take.
TEST_F(CostPlannerTest, SlowStoresAreGivenUpAlone) {
  Script script{.chains = {counting(20)}, .store_seconds = 1e-3};
  const auto request = planner(quick_until_8(), {&script}).begin(text_);
  for (int i = 0; i < 300; ++i) finish(*request, plan(*request), /*right=*/false);
  EXPECT_EQ(script.n_drafts, 300);
  EXPECT_LT(script.n_searches, 60);
  EXPECT_GT(script.n_searches, 4);
}

// What the text at hand brings does not pay for them.
TEST_F(CostPlannerTest, StoresAreAskedForWhatTheyBringThemselves) {
  for (const auto source : {DraftSource::kInput, DraftSource::kDatastore}) {
    Script script{.chains = {counting(20)}, .store_seconds = 1e-3, .source = source};
    const auto request = planner(quick_until_8(), {&script}).begin(text_);
    EXPECT_EQ(verified_after(*request, 200, /*right=*/true), 7);
    EXPECT_EQ(script.n_drafts, 200);
    EXPECT_EQ(script.n_searches == 200, source == DraftSource::kDatastore);
  }
}

// What is worth taking depends on what else the time brings: at twice the speed of plain decoding a row
// must bring twice as much.
TEST_F(CostPlannerTest, TimeIsWorthWhatItBringsInTheLongRun) {
  const PassCosts costs({.curve = CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                                             {.n_rows = 21, .seconds = 5.0, .seconds_per_token = 0}}),
                         .blocks = {}});
  Script script{.chains = {{1}, {2}}, .scores = {0.6f, 0.4f}};
  auto slow = planner(costs, {&script}).begin(text_);
  EXPECT_EQ(plan(*slow).size(), 2) << "each about a third for a fifth of a step";
  auto fast = planner_->begin(text_);
  for (int i = 0; i < 50; ++i) fast->speed.add(2, 1);
  EXPECT_EQ(plan(*fast).size(), 1);
}

TEST_F(CostPlannerTest, AgreementOfDraftersCounts) {
  Script one{.chains = {{1, 2}, {5}}}, other{.chains = {{1, 7}}};
  auto request = planner(cheap_until_8(), {&one, &other}).begin(text_);
  const DraftTree tree = plan(*request);
  EXPECT_EQ(tree.n_children(kRoot), 2);
  EXPECT_EQ(tree[tree.find_child(kRoot, TokenId{1}).value()].proposers, text_bit(0) | text_bit(1));
  EXPECT_EQ(tree[tree.find_child(kRoot, TokenId{5}).value()].proposers, text_bit(0));
}

TEST_F(CostPlannerTest, RowsGoToTheRequestsWhoseDraftsAreBest) {
  Script script{.chains = {counting(20)}};
  CostPlanner& planning = planner(cheap_until_8(), {&script});
  auto good = planning.begin(text_), bad = planning.begin(text_);
  for (int i = 0; i < 60; ++i) {
    finish(*good, plan(*good), true);
    finish(*bad, plan(*bad), false);
  }
  DraftTree of_good, of_bad;
  const DraftLimits limits{.max_nodes = 100, .max_depth = 64};
  const PlanJob jobs[] = {{.request = bad.get(), .limits = limits, .tree = &of_bad},
                          {.request = good.get(), .limits = limits, .tree = &of_good}};
  planning.plan(jobs, {.n_decoding = 2, .n_prompt_rows = 0});
  EXPECT_EQ(of_good.size() + of_bad.size(), 6);
  EXPECT_GE(of_good.size(), 5);
}

TEST_F(CostPlannerTest, TreesKeepToTheirLimits) {
  Script script{.chains = {counting(20), {7, 8}}};
  CostPlanner& planning = planner(cheap_until_8(), {&script});
  auto request = planning.begin(text_);
  verified_after(*request, 60, true);
  DraftTree tree;
  PlanJob job{.request = request.get(), .limits = {.max_nodes = 3, .max_depth = 64}, .tree = &tree};
  planning.plan({&job, 1}, {.n_decoding = 1, .n_prompt_rows = 0});
  EXPECT_EQ(tree.size(), 3);
  tree.clear();
  job.limits = {.max_nodes = 7, .max_depth = 64, .is_chain = true};
  planning.plan({&job, 1}, {.n_decoding = 1, .n_prompt_rows = 0});
  EXPECT_EQ(tree.max_depth(), tree.size());
}

TEST_F(CostPlannerTest, NoTreeIsLargerThanTheUserSays) {
  Script script{.chains = {counting(20)}};
  costs_ = std::make_unique<PassCosts>(cheap_until_8());
  planner_ = std::make_unique<CostPlanner>(test::scripted({&script}), *costs_,
                                           [](int n_requests) { return 4 / n_requests; });
  auto request = planner_->begin(text_);
  EXPECT_EQ(verified_after(*request, 60, true), 4);
  EXPECT_EQ(plan(*request, {.n_decoding = 2, .n_prompt_rows = 0}).size(), 2);
}

TEST_F(CostPlannerTest, LooksTextsOfManyRequestsUpAtOnce) {
  Script script{.chains = {counting(3)}};
  costs_ = std::make_unique<PassCosts>(cheap_until_8());
  std::vector<size_t> shared;
  const auto backwards = [&](size_t n, const std::function<void(size_t)>& f) {
    shared.push_back(n);
    for (size_t i = n; i-- > 0;) f(i);
  };
  planner_ = std::make_unique<CostPlanner>(
      test::scripted({&script}), *costs_, [](int) { return kLargestTree; }, backwards);
  constexpr int kRequests = 5;
  std::vector<std::unique_ptr<RequestPlan>> requests;
  std::array<DraftTree, kRequests> trees;
  std::vector<PlanJob> jobs;
  for (DraftTree& tree : trees) {
    requests.push_back(planner_->begin(text_));
    jobs.push_back({.request = requests.back().get(),
                    .limits = {.max_nodes = 100, .max_depth = 64},
                    .tree = &tree});
  }
  planner_->plan(jobs, {.n_decoding = kRequests, .n_prompt_rows = 0});
  EXPECT_THAT(shared, testing::ElementsAre(5u));
  EXPECT_EQ(script.n_drafts, kRequests);
  for (const auto& request : requests) {
    EXPECT_EQ(request->proposed.tree.size(), 3);
    EXPECT_EQ(request->chances, requests.front()->chances);
  }
  planner_->plan(std::span(jobs).first(1), {.n_decoding = 1, .n_prompt_rows = 0});
  EXPECT_EQ(shared.size(), 1u) << "waking a thread takes longer than one lookup";
}

// Finding drafts for a model that is faster than that does not pay.
TEST_F(CostPlannerTest, LooksUpLessOftenWhereThatCostsMore) {
  Script script{.chains = {counting(3)}, .seconds = 2e-4};
  PassCosts tiny({.curve = CostCurve({{.n_rows = 1, .seconds = 1e-4, .seconds_per_token = 0},
                                      {.n_rows = 64, .seconds = 1e-2, .seconds_per_token = 0}}),
                  .blocks = {}});
  auto request = planner(tiny, {&script}).begin(text_);
  for (int i = 0; i < 1000; ++i) {
    const DraftTree tree = plan(*request);
    planner_->observe({.load = {.n_decoding = 1, .n_prompt_rows = 0},
                       .n_rows = 1,
                       .n_context = 3,
                       .draft_seconds = script.has_drafted ? 2e-4 : 0});
    script.has_drafted = false;
    const TokenId token{999};
    planner_->append(*request, {&token, 1});
  }
  EXPECT_LT(script.n_drafts, 120);
  EXPECT_GT(script.n_drafts, 4);
}

class ForcesTokens final : public Constraint {
 public:
  bool allows(TokenId) const override { return true; }
  void mask(std::span<float>) const override {}
  std::shared_ptr<const Constraint> after(TokenId) const override {
    return std::make_shared<ForcesTokens>();
  }
  std::vector<TokenId> forced() const override { return ids({7, 8, 9}); }
};

TEST_F(CostPlannerTest, DraftsWhatAGrammarForces) {
  text_.constrain(std::make_shared<ForcesTokens>());
  auto request = planner(cheap_until_8(), {}).begin(text_);
  const DraftTree tree = plan(*request);
  ASSERT_EQ(tree.size(), 3);
  for (int32_t node = 0; node < 3; ++node) {
    EXPECT_EQ(tree[node].token, TokenId{7 + node});
    EXPECT_EQ(tree[node].source, DraftSource::kGrammar);
  }
}

TEST(OwnPlanner, VerifiesAllThatIsProposed) {
  Script script{.chains = {counting(20)}};
  OwnPlanner planner(test::scripted({&script}), 12);
  const ShortText text;
  const auto request = planner.begin(text);
  DraftTree tree;
  const PlanJob job{
      .request = request.get(), .limits = {.max_nodes = 100, .max_depth = 64}, .tree = &tree};
  planner.plan({&job, 1}, {.n_decoding = 1, .n_prompt_rows = 0});
  EXPECT_EQ(tree.size(), 12);
}

TEST(Roofline, TreesAreAsLargeAsTheHardwareIsFree) {
  const PassCosts costs({.curve = CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                                             {.n_rows = 64, .seconds = 2.0, .seconds_per_token = 0}}),
                         .blocks = {}});
  EXPECT_EQ(roofline_nodes(costs, false, 1), 31) << "32 with the root";
  EXPECT_EQ(roofline_nodes(costs, false, 4), 7);
  EXPECT_EQ(roofline_nodes(costs, false, 64), 0);
}

}  // namespace
}  // namespace forerun
