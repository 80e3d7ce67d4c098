#include "budget/auto_budget.h"

#include <gtest/gtest.h>

#include "budget/roofline_budget.h"

namespace forerun {
namespace {

// Rows up to 8 are nearly free, then each costs as much as a pass.
CostCurve cheap_until_8() {
  return CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                    {.n_rows = 8, .seconds = 1.2, .seconds_per_token = 0},
                    {.n_rows = 9, .seconds = 2.2, .seconds_per_token = 0},
                    {.n_rows = 64, .seconds = 57.2, .seconds_per_token = 0}});
}
// Every row costs a pass: nothing can be gained.
CostCurve never_free() {
  return CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                    {.n_rows = 64, .seconds = 64.0, .seconds_per_token = 0}});
}

DraftTree chain(int n) {
  DraftTree tree;
  for (int32_t i = 0; i < n; ++i) {
    tree.add({.token = TokenId{i + 1}, .parent = i - 1, .score = 0.95f, .match_length = 4});
  }
  return tree;
}

// Runs `n_passes` in which the draft, a chain of 20, is right (or wrong) as a whole; how
// many nodes the last pass verified.
int verified_after(AutoBudget& budget, int n_passes, bool right, int* n_drafts = nullptr) {
  const RequestId request{1};
  const PassPlan plan{.n_decoding = 1, .n_prompt_rows = 0};
  int n_verified = 0;
  for (int pass = 0; pass < n_passes; ++pass) {
    const int n = budget.max_nodes(request, plan);
    if (n > 0 && n_drafts != nullptr) ++*n_drafts;
    DraftTree tree = chain(std::min(n, 20));
    Proposal proposal{.request = request, .n_context = 10, .tree = &tree};
    budget.choose({&proposal, 1}, plan);
    if (n > 0) n_verified = tree.size();
    std::vector<TokenId> tokens;
    for (int32_t i = 0; right && i < tree.size(); ++i) tokens.push_back(TokenId{i + 1});
    tokens.push_back(right ? TokenId{tree.size() + 1} : TokenId{999});
    budget.observe(Outcome{.request = request, .tokens = tokens});
  }
  return n_verified;
}

TEST(AutoBudget, VerifiesWhatIsFree) {
  AutoBudget budget(cheap_until_8(), {});
  EXPECT_EQ(verified_after(budget, 60, /*right=*/true), 7) << "eight rows with the text's own";
}

TEST(AutoBudget, StopsWhenDraftsAreWrongAndComesBack) {
  AutoBudget budget(never_free(), {});
  EXPECT_EQ(verified_after(budget, 20, /*right=*/true), 0);
  AutoBudget other(cheap_until_8(), {});
  int n_drafts = 0;
  EXPECT_EQ(verified_after(other, 400, /*right=*/false, &n_drafts), 0);
  EXPECT_LT(n_drafts, 120) << "drafts only now and then";
  EXPECT_GT(n_drafts, 20) << "but does not give up";
  EXPECT_EQ(verified_after(other, 400, /*right=*/true), 7);
}

// Or the rules that compare distributions would change the text's.
TEST(AutoBudget, DropsNoTokenThatWasDrawn) {
  AutoBudget budget(never_free(), {});
  DraftTree drawn = chain(5);
  drawn.set_distribution(kRoot, {.tokens = {TokenId{1}, TokenId{2}}, .logprobs = {-0.1f, -2.4f}});
  DraftTree chosen = chain(5);
  for (DraftTree* tree : {&drawn, &chosen}) {
    Proposal proposal{.request = RequestId{1}, .n_context = 10, .tree = tree};
    budget.choose({&proposal, 1}, {.n_decoding = 1, .n_prompt_rows = 0});
  }
  EXPECT_EQ(drawn.size(), 5);
  EXPECT_EQ(chosen.size(), 0);
}

TEST(AutoBudget, GivesRowsToTheRequestThatUsesThem) {
  AutoBudget budget(cheap_until_8(), {});
  const PassPlan plan{.n_decoding = 2, .n_prompt_rows = 0};
  int good = 0, bad = 0;
  for (int pass = 0; pass < 60; ++pass) {
    DraftTree trees[2];
    Proposal proposals[2];
    for (int i = 0; i < 2; ++i) {
      const RequestId request{i};
      trees[i] = chain(std::min(20, budget.max_nodes(request, plan)));
      proposals[i] = {.request = request, .n_context = 10, .tree = &trees[i]};
    }
    budget.choose(proposals, plan);
    good = trees[0].size();
    bad = trees[1].size();
    std::vector<TokenId> tokens;
    for (int32_t i = 0; i <= trees[0].size(); ++i) tokens.push_back(TokenId{i + 1});
    budget.observe(Outcome{.request = RequestId{0}, .tokens = tokens});
    const TokenId wrong{999};
    budget.observe(Outcome{.request = RequestId{1}, .tokens = {&wrong, 1}});
  }
  EXPECT_GE(good, 5);
  EXPECT_LE(bad, 1);
}

TEST(AutoBudget, PassesCorrectTheCurve) {
  // Measured as free, but on this machine, now, rows are dear.
  AutoBudget budget(CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                               {.n_rows = 2, .seconds = 1.01, .seconds_per_token = 0},
                               {.n_rows = 8, .seconds = 1.05, .seconds_per_token = 0}}),
                    {});
  ASSERT_GT(verified_after(budget, 60, true), 0);
  for (int i = 0; i < 300; ++i) {
    budget.observe(PassCost{
        .plan = {.n_decoding = 1, .n_prompt_rows = 0}, .n_rows = 1, .n_context = 10, .seconds = 0.7});
    for (const int n : {2, 4, 8}) {
      budget.observe(PassCost{
          .plan = {.n_decoding = 1, .n_prompt_rows = 0}, .n_rows = n, .n_context = 10, .seconds = 1.5});
    }
  }
  const RequestId request{7};
  DraftTree tree;
  tree.add({.token = TokenId{1}, .score = 0.5f, .match_length = 1});
  Proposal proposal{.request = request, .n_context = 10, .tree = &tree};
  budget.choose({&proposal, 1}, {.n_decoding = 1, .n_prompt_rows = 0});
  EXPECT_TRUE(tree.empty()) << "half a token is not worth twice the time";
}

// Every draft is right, and takes longer to find than the pass that it saves.
TEST(AutoBudget, DoesNotAskForDraftsThatCostMoreThanTheySave) {
  for (const double draft_seconds : {0.1, 3.0}) {
    AutoBudget budget(CostCurve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                                 {.n_rows = 8, .seconds = 1.1, .seconds_per_token = 0}}),
                      {});
    const RequestId request{1};
    const PassPlan plan{.n_decoding = 1, .n_prompt_rows = 0};
    const TokenId tokens[] = {TokenId{1}, TokenId{2}};
    int n_asked = 0;
    for (int i = 0; i < 2000; ++i) {
      DraftTree tree;
      const bool asked = budget.max_nodes(request, plan) > 0;
      if (asked) tree.add({.token = tokens[0], .score = 0.9f, .match_length = 4});
      n_asked += asked ? 1 : 0;
      Proposal proposal{.request = request, .n_context = 10, .tree = &tree};
      budget.choose({&proposal, 1}, plan);
      budget.observe(PassCost{.plan = plan,
                              .n_rows = 1 + tree.size(),
                              .n_context = 10,
                              .seconds = 1.0,
                              .draft_seconds = asked ? draft_seconds : 0});
      budget.observe(Outcome{.request = request, .tokens = {tokens, tree.empty() ? 1u : 2u}});
    }
    if (draft_seconds < 1) {
      EXPECT_GT(n_asked, 1900);
    } else {
      EXPECT_LT(n_asked, 100);
    }
  }
}

TEST(RooflineBudget, FollowsThePublishedCaps) {
  // A row of a large pass takes a 48th of a pass of one.
  const CostCurve curve({{.n_rows = 1, .seconds = 1.0, .seconds_per_token = 0},
                         {.n_rows = 64, .seconds = 64.0 / 48, .seconds_per_token = 0}});
  const RooflineBudget cpu(curve, /*has_accelerator=*/false);
  EXPECT_EQ(cpu.n_nodes(1), 31);
  EXPECT_EQ(cpu.n_nodes(2), 23);
  EXPECT_EQ(cpu.n_nodes(4), 11);
  EXPECT_EQ(cpu.n_nodes(16), 2);
  EXPECT_EQ(cpu.n_nodes(48), 0);
}

}  // namespace
}  // namespace forerun
