#include "plan/model_choice.h"

#include <gtest/gtest.h>

#include "draft/model/draft_model_fixture.h"
#include "draft/model/layer_skipping.h"
#include "plan/cost_planner.h"
#include "plan/scripted_drafter.h"

namespace forerun {
namespace {

using test::Script;
using test::WrittenText;

// A planner with a model that drafts for its own text, and with texts that say what they are told.
class ModelChoiceTest : public test::DraftModelFixture {
 protected:
  std::unique_ptr<CostPlanner> planner(std::vector<Script*> scripts = {},
                                       std::function<double()> now = steady_seconds) {
    DrafterSet drafters = test::scripted(scripts);
    drafters.models.push_back(
        std::make_unique<DraftModelDrafter>(ChainOptions{.tokens = 12, .threshold = 0}, draft_));
    return std::make_unique<CostPlanner>(
        std::move(drafters), costs_, [](int) { return kLargestTree; }, one_after_other, std::move(now));
  }

  static DraftTree plan(CostPlanner& planner, RequestPlan& request) {
    DraftTree tree;
    const PlanJob job{.request = &request, .limits = {.max_nodes = 30, .max_depth = 12}, .tree = &tree};
    planner.plan({&job, 1}, {.n_decoding = 1, .n_prompt_rows = 0});
    planner.observe({.load = {.n_decoding = 1, .n_prompt_rows = 0},
                     .n_rows = 1 + tree.size(),
                     .n_context = request.n_context(),
                     .draft_seconds = 2.6 * request.drafted.size()});
    return tree;
  }
  static std::vector<TokenId> spine_of(const RequestPlan& request) {
    std::vector<TokenId> tokens;
    for (const int32_t node : request.proposed.spine)
      tokens.push_back(request.proposed.tree[node].token);
    return tokens;
  }
  // A short text, and what is drafted behind it taken for right, or for wrong.
  void show(CostPlanner& planner, bool right, int n = 20) { show(planner, right, n, short_text_); }
  static void show(CostPlanner& planner, bool right, int n, const WrittenText& text) {
    const auto request = planner.begin(text);
    for (int i = 0; i < n; ++i) {
      plan(planner, *request);
      std::vector<TokenId> tokens = spine_of(*request);
      if (!right || tokens.empty()) tokens = {TokenId{299}};
      planner.append(*request, tokens);
    }
  }

  // Two requests that are planned together.
  struct Pair {
    Pair(CostPlanner& planner, const WrittenText& text, const WrittenText& other_text)
        : one(planner.begin(text)), other(planner.begin(other_text)) {}

    static constexpr DraftLimits kLimits{.max_nodes = 30, .max_depth = 12};
    static constexpr PassLoad kLoad{.n_decoding = 2, .n_prompt_rows = 0};
    std::unique_ptr<RequestPlan> one, other;
    std::array<DraftTree, 2> trees;
    std::array<PlanJob, 2> jobs{PlanJob{.request = one.get(), .limits = kLimits, .tree = &trees[0]},
                                PlanJob{.request = other.get(), .limits = kLimits, .tree = &trees[1]}};
  };

  const WrittenText short_text_ = text_behind(3);
  const WrittenText other_text_ = text_behind(4);
};

TEST_F(ModelChoiceTest, DraftsWhatPays) {
  const auto planning = planner();
  show(*planning, true);
  const auto request = planning->begin(short_text_);
  EXPECT_GT(plan(*planning, *request).size(), 3);
  EXPECT_EQ(request->proposed.spine.size(), static_cast<size_t>(request->drafted.size()));
}

TEST_F(ModelChoiceTest, TriesAgainWhatDoesNotPayEverMoreRarely) {
  const auto planning = planner();
  show(*planning, false, 100);
  const auto request = planning->begin(short_text_);
  int n_drafts = 0, n_late = 0;
  for (int i = 0; i < 600; ++i) {
    plan(*planning, *request);
    EXPECT_LE(request->drafted.size(), 2);
    n_drafts += request->drafted.empty() ? 0 : 1;
    n_late += i >= 300 && !request->drafted.empty() ? 1 : 0;
    const TokenId wrong{299};
    planning->append(*request, {&wrong, 1});
  }
  EXPECT_GT(n_drafts, 2);
  EXPECT_LT(n_drafts, 20);
  EXPECT_LT(n_late, n_drafts - n_late);
}

TEST_F(ModelChoiceTest, ALongTextIsNotReadForAModelThatNothingIsKnownOf) {
  const auto planning = planner();
  const WrittenText text = text_behind(100);
  const auto request = planning->begin(text);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(plan(*planning, *request).empty());
  EXPECT_EQ(draft_->executor->n_passes(), 0);
}

TEST_F(ModelChoiceTest, ItIsReadForOneThatHasShownItself) {
  const auto planning = planner();
  show(*planning, true);
  const WrittenText text = text_behind(40);
  const auto request = planning->begin(text);
  for (int i = 0; i < 5; ++i) plan(*planning, *request);
  EXPECT_GT(plan(*planning, *request).size(), 1);
}

TEST_F(ModelChoiceTest, WhatItPromisesForOneStepIsNotBelievedAtOnce) {
  const auto planning = planner();
  show(*planning, true);
  WrittenText text = text_behind(40);
  text.set_n_left(100);
  const auto request = planning->begin(text);
  EXPECT_TRUE(plan(*planning, *request).empty());
  for (int i = 0; i < 20; ++i) plan(*planning, *request);
  EXPECT_FALSE(plan(*planning, *request).empty());
}

TEST_F(ModelChoiceTest, ItIsNotReadForTheLastFewTokens) {
  const auto planning = planner();
  show(*planning, true);
  WrittenText text = text_behind(40);
  text.set_n_left(10);
  const auto request = planning->begin(text);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(plan(*planning, *request).empty());
  text.set_n_left(1000);
  EXPECT_FALSE(plan(*planning, *request).empty());
}

TEST_F(ModelChoiceTest, ItIsNotReadForWhatAnotherModelDraftsAtOnce) {
  DrafterSet drafters;
  const ChainOptions chain{.tokens = 12, .threshold = 0};
  drafters.models.push_back(std::make_unique<DraftModelDrafter>(chain, draft_));
  // Nearly as cheap as that model, and as often right.
  Calibration calibration = test::planted_costs();
  calibration.blocks = {.attention = 0.05, .mlp = 0.05, .rest = 2.2};
  PassCosts costs(calibration, PassCosts::Known::kGiven);
  drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(
      chain, *executor_, costs, std::make_unique<FixedLayers>(test::without_planted())));
  CostPlanner planning(std::move(drafters), costs);
  show(planning, true);
  WrittenText text = text_behind(36);
  text.set_n_left(10);  // nobody reads for so few
  show(planning, true, 60, text);
  text.set_n_left(100);
  const auto request = planning.begin(text);
  const auto n_passes = draft_->executor->n_passes();
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(plan(planning, *request).empty());
  EXPECT_EQ(draft_->executor->n_passes(), n_passes);
}

// That one model pays does not keep another from showing that it pays more, or less.
TEST_F(ModelChoiceTest, EveryModelThatMayPayIsGivenAChance) {
  DrafterSet drafters;
  const ChainOptions chain{.tokens = 12, .threshold = 0};
  drafters.models.push_back(std::make_unique<DraftModelDrafter>(chain, draft_));
  LayerSet few = LayerSet::none(model_->config().n_layers);
  for (const int block : {0, 1, 2 * test::kPlantedLayers - 1}) few.set(BlockId{block}, true);
  drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(chain, *executor_, costs_,
                                                                   std::make_unique<FixedLayers>(few)));
  CostPlanner planning(std::move(drafters), costs_);
  const auto request = planning.begin(short_text_);
  std::array<int, 2> n_early{}, n_late{};
  for (int i = 0; i < 60; ++i) {
    plan(planning, *request);
    std::vector<TokenId> tokens = spine_of(*request);
    const size_t model = request->proposed.model;
    if (!tokens.empty()) ++(i < 30 ? n_early : n_late)[model];
    // What the draft model says is right.
    if (tokens.empty() || model == 1) tokens = {TokenId{299}};
    planning.append(*request, tokens);
  }
  EXPECT_GT(n_early[0], 0);
  EXPECT_GT(n_early[1], 0);
  EXPECT_GT(n_late[0], 20);
  EXPECT_LT(n_late[1], 5);
}

// With many at once, reading all their texts for a model that turns out to be no good is dear.
TEST_F(ModelChoiceTest, OneRequestFindsOutForAllWhatAModelIsWorth) {
  const auto planning = planner();
  Pair pair(*planning, short_text_, other_text_);
  auto& [one, other, trees, jobs] = pair;
  std::optional<int> first, first_of_both;
  int n_drafted_before = 0;
  for (int i = 0; i < 2000 && !first_of_both; ++i) {
    for (DraftTree& tree : trees) tree.clear();
    planning->plan(jobs, Pair::kLoad);
    const bool both = !one->drafted.empty() && !other->drafted.empty();
    if (both) first_of_both = i;
    if (!first && (!one->drafted.empty() || !other->drafted.empty())) first = i;
    if (!both) n_drafted_before += one->drafted.size() + other->drafted.size();
    for (RequestPlan* request : {one.get(), other.get()}) {
      std::vector<TokenId> tokens =
          request->drafted.empty() ? std::vector<TokenId>{} : spine_of(*request);
      if (tokens.empty()) tokens = {TokenId{299}};
      planning->append(*request, tokens);
    }
  }
  ASSERT_TRUE(first_of_both) << "what it drafts is right";
  EXPECT_GT(*first, 8) << "the time for a trial is saved up first";
  EXPECT_GE(n_drafted_before, 16);
  EXPECT_LT(n_drafted_before, 40);
}

// What was believed of a trial's cost may be wrong: what it really took is kept to the same share of
// time.
TEST_F(ModelChoiceTest, OnlyOneOfManyRequestsTriesAModelInAPass) {
  constexpr int kRequests = 24;  // more than there are refusals before a trial
  draft_->n_slots = kRequests;
  const auto planning = planner({}, [] { return 0.0; });
  std::vector<std::unique_ptr<RequestPlan>> requests;
  std::vector<DraftTree> trees(kRequests);
  std::vector<PlanJob> jobs;
  for (int i = 0; i < kRequests; ++i) {
    requests.push_back(planning->begin(short_text_));
    jobs.push_back({.request = requests.back().get(), .limits = Pair::kLimits, .tree = &trees[i]});
  }
  int n_trials = 0;
  for (int pass = 0; pass < 200 && n_trials < 2; ++pass) {
    for (DraftTree& tree : trees) tree.clear();
    planning->plan(jobs, {.n_decoding = kRequests, .n_prompt_rows = 0});
    const auto n = std::ranges::count_if(requests, [](const auto& r) { return !r->drafted.empty(); });
    EXPECT_LE(n, 1) << "pass " << pass;
    n_trials += n > 0 ? 1 : 0;
    const TokenId wrong{299};
    for (const auto& request : requests) planning->append(*request, {&wrong, 1});
  }
  EXPECT_EQ(n_trials, 2);
}

TEST_F(ModelChoiceTest, ATrialThatTookLongIsSavedUpForBeforeTheNext) {
  const auto steps_of_two_trials = [&](double seconds_of_trial) {
    double time = 0;
    const auto planning = planner({}, [&] { return time += seconds_of_trial / 4; });
    Pair pair(*planning, short_text_, other_text_);
    auto& [one, other, trees, jobs] = pair;
    int n_trials = 0, n_steps = 0;
    for (; n_trials < 2 && n_steps < 20'000; ++n_steps) {
      for (DraftTree& tree : trees) tree.clear();
      planning->plan(jobs, Pair::kLoad);
      n_trials += one->drafted.empty() && other->drafted.empty() ? 0 : 1;
      const TokenId wrong{299};
      for (RequestPlan* request : {one.get(), other.get()}) planning->append(*request, {&wrong, 1});
    }
    return n_steps;
  };
  EXPECT_GT(steps_of_two_trials(1000), 3 * steps_of_two_trials(0));
  EXPECT_EQ(steps_of_two_trials(1e9), steps_of_two_trials(1e6)) << "one that was held up says little";
  EXPECT_LT(steps_of_two_trials(1e9), 20'000);
}

// A pass of the draft model is worth it for two requests, and not for one while the other waits.
TEST_F(ModelChoiceTest, PassesThatFewRequestsShareMustPayForThemselves) {
  draft_->costs = std::make_unique<PassCosts>(
      Calibration{.curve = CostCurve({{.n_rows = 1, .seconds = 12, .seconds_per_token = 0},
                                      {.n_rows = 64, .seconds = 12, .seconds_per_token = 0}}),
                  .blocks = {}},
      PassCosts::Known::kGiven);
  const auto planning = planner();
  show(*planning, true);
  Pair pair(*planning, short_text_, other_text_);
  auto& [one, other, trees, jobs] = pair;
  planning->plan(jobs, Pair::kLoad);
  EXPECT_GT(one->drafted.size(), 1);
  EXPECT_GT(other->drafted.size(), 1);
  planning->plan(std::span(jobs).first(1), Pair::kLoad);
  EXPECT_TRUE(one->drafted.empty()) << "nobody drafts beside it";
}

// What texts propose already a model need not draft.
TEST_F(ModelChoiceTest, CountsWhatItAddsToTexts) {
  Script script;
  const auto planning = planner({&script});
  show(*planning, true);
  // What the model would draft, proposed by texts that have been right so far.
  const auto request = planning->begin(short_text_);
  plan(*planning, *request);
  std::vector<int> right;
  for (const TokenId token : spine_of(*request)) right.push_back(to_int(token));
  ASSERT_GT(right.size(), 3u);
  planning->append(*request, {});
  script.chains = {right};
  int n_drafted = 0;
  for (int i = 0; i < 60; ++i) {
    plan(*planning, *request);
    n_drafted = request->drafted.size();
    std::vector<TokenId> tokens;
    for (const int token : right) tokens.push_back(TokenId{token});
    planning->append(*request, tokens);
  }
  EXPECT_EQ(n_drafted, 0);
}

// Texts that propose something else do not keep it from drafting, and what it says of their
// proposals makes these less likely.
TEST_F(ModelChoiceTest, SaysWhatItThinksOfTexts) {
  Script script{.chains = {{298, 297}}, .scores = {0.5f}};
  const auto planning = planner({&script});
  show(*planning, true);
  const auto request = planning->begin(short_text_);
  const DraftTree tree = plan(*planning, *request);
  ASSERT_FALSE(request->drafted.empty());
  const DraftTree& all = request->proposed.tree;
  const auto other = all.find_child(kRoot, TokenId{298});
  ASSERT_TRUE(other);
  EXPECT_GE(all[*other].probability, 0);
  EXPECT_FALSE(tree.find_child(kRoot, TokenId{298})) << "next to impossible, says the model";
  EXPECT_GT(tree.size(), 2);
}

}  // namespace
}  // namespace forerun
