#include "budget/acceptance_model.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

// A chain of tokens 1, 2, 3, ... that the drafter is sure of.
DraftTree chain(int n, DraftSource source = DraftSource::kInput, int match_length = 3) {
  DraftTree tree;
  for (int32_t i = 0; i < n; ++i) {
    tree.add({.token = TokenId{i + 1},
              .parent = i - 1,
              .score = 0.95f,
              .source = source,
              .match_length = match_length});
  }
  return tree;
}

double first_chance(const AcceptanceModel& model, const DraftTree& tree,
                    const RequestAcceptance& request) {
  std::vector<double> chances;
  model.estimate(tree, request, chances);
  return chances.front();
}

TEST(AcceptanceModel, LearnsHowOftenDraftsAreRight) {
  for (const double truth : {0.1, 0.5, 0.9}) {
    AcceptanceModel model;
    RequestAcceptance request;
    const DraftTree tree = chain(1);
    std::mt19937 random(3);
    double mean = 0;
    for (int i = 0; i < 600; ++i) {
      AcceptanceModel::propose(tree, request);
      const TokenId token{std::uniform_real_distribution(0.0, 1.0)(random) < truth ? 1 : 99};
      model.observe({&token, 1}, request);
      if (i >= 200) mean += first_chance(model, tree, request) / 400;
    }
    EXPECT_NEAR(mean, truth, 0.08);
  }
}

TEST(AcceptanceModel, KeepsSourcesAndMatchesApart) {
  AcceptanceModel model;
  RequestAcceptance request;
  const TokenId right{1}, wrong{99};
  for (int i = 0; i < 200; ++i) {
    AcceptanceModel::propose(chain(1, DraftSource::kInput, 5), request);
    model.observe({&right, 1}, request);
    AcceptanceModel::propose(chain(1, DraftSource::kInput, 1), request);
    model.observe({&wrong, 1}, request);
    AcceptanceModel::propose(chain(1, DraftSource::kDatastore, 5), request);
    model.observe({&wrong, 1}, request);
  }
  EXPECT_GT(first_chance(model, chain(1, DraftSource::kInput, 5), request), 0.7);
  EXPECT_LT(first_chance(model, chain(1, DraftSource::kInput, 1), request), 0.3);
  EXPECT_LT(first_chance(model, chain(1, DraftSource::kDatastore, 5), request), 0.3);
}

TEST(AcceptanceModel, ComparesProposalsWithTextThatComesLater) {
  AcceptanceModel model;
  RequestAcceptance request;
  const DraftTree tree = chain(3);
  const double before = first_chance(model, tree, request);
  for (int i = 0; i < 50; ++i) {
    AcceptanceModel::propose(tree, request);
    // One token at a time, as when nothing is verified; empty proposals in between.
    for (const TokenId token : {TokenId{1}, TokenId{2}, TokenId{3}}) {
      model.observe({&token, 1}, request);
      AcceptanceModel::propose({}, request);
    }
  }
  std::vector<double> chances;
  model.estimate(tree, request, chances);
  EXPECT_GT(chances[0], before);
  EXPECT_GT(chances[2], 0.75) << "all three were right every time";
  EXPECT_LE(chances[2], chances[1]);
  EXPECT_LE(chances[1], chances[0]);
}

TEST(AcceptanceModel, TellsRequestsApart) {
  AcceptanceModel model;
  RequestAcceptance good, bad;
  const DraftTree tree = chain(1);
  const TokenId right{1}, wrong{99};
  for (int i = 0; i < 40; ++i) {
    AcceptanceModel::propose(tree, good);
    model.observe({&right, 1}, good);
    AcceptanceModel::propose(tree, bad);
    model.observe({&wrong, 1}, bad);
  }
  EXPECT_GT(first_chance(model, tree, good), 2 * first_chance(model, tree, bad));
  // The text changes: what the request's drafts are worth follows.
  for (int i = 0; i < 60; ++i) {
    AcceptanceModel::propose(tree, bad);
    model.observe({&right, 1}, bad);
  }
  EXPECT_GT(first_chance(model, tree, bad), 0.6);
}

}  // namespace
}  // namespace forerun
