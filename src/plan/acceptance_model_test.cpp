#include "plan/acceptance_model.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

// A chain of tokens 1, 2, 3, ... that the drafter is sure of.
ProposedTree chain(int n, DraftSource source = DraftSource::kInput, int match_length = 3) {
  ProposedTree proposed;
  DraftTree& tree = proposed.tree;
  for (int32_t i = 0; i < n; ++i) {
    tree.add({.token = TokenId{i + 1},
              .parent = i - 1,
              .score = 0.95f,
              .source = source,
              .match_length = match_length});
  }
  return proposed;
}

double first_chance(const AcceptanceModel& model, const ProposedTree& proposed,
                    const RequestAcceptance& request) {
  std::vector<double> chances;
  model.estimate(proposed, request, chances);
  return chances.front();
}

TEST(AcceptanceModel, LearnsHowOftenDraftsAreRight) {
  for (const double truth : {0.1, 0.5, 0.9}) {
    AcceptanceModel model;
    RequestAcceptance request;
    const ProposedTree tree = chain(1);
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
  const ProposedTree tree = chain(3);
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
  const ProposedTree tree = chain(1);
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

// 1 of 1 is not 20 of 20.
TEST(AcceptanceModel, KnowsHowOftenSomethingWasSeen) {
  AcceptanceModel model;
  RequestAcceptance request;
  ProposedTree once, often;
  once.tree.add({.token = TokenId{1}, .score = 0.95f, .match_length = 3, .n_seen = 1});
  often.tree.add({.token = TokenId{1}, .score = 0.95f, .match_length = 3, .n_seen = 20});
  const TokenId right{1}, wrong{99};
  for (int i = 0; i < 300; ++i) {
    AcceptanceModel::propose(once, request);
    model.observe({i % 2 == 0 ? &right : &wrong, 1}, request);
    AcceptanceModel::propose(often, request);
    model.observe({&right, 1}, request);
  }
  EXPECT_NEAR(first_chance(model, once, request), 0.5, 0.12);
  EXPECT_GT(first_chance(model, often, request), 0.85);
}

// A tree in which a model drafted a chain of two tokens with these probabilities.
ProposedTree drafted(double first, double second, size_t model = 0) {
  ProposedTree proposed;
  proposed.model = model;
  for (const double probability : {first, second}) {
    const int32_t end = proposed.spine.empty() ? kRoot : proposed.spine.back();
    const int32_t node = proposed.tree.add({.token = TokenId{1},
                                            .parent = end,
                                            .score = 0.5f,
                                            .source = DraftSource::kLayers,
                                            .probability = static_cast<float>(probability),
                                            .proposers = model_bit(model)});
    proposed.spine.push_back(node);
  }
  return proposed;
}

TEST(AcceptanceModel, LearnsWhatAModelsProbabilitiesMean) {
  AcceptanceModel model;
  RequestAcceptance request;
  EXPECT_NEAR(first_chance(model, drafted(0.9, 0.9), request), 0.9, 0.05) << "what it says, at first";
  EXPECT_EQ(model.n_known(0), 0);
  const TokenId right{1}, wrong{99};
  // Right where it is sure, wrong where it is not, and sure of nothing behind that.
  for (int i = 0; i < 300; ++i) {
    const bool is_sure = i % 2 == 0;
    AcceptanceModel::propose(is_sure ? drafted(0.99, 0.99) : drafted(0.6, 0.6), request);
    const TokenId tokens[] = {right, is_sure ? right : wrong};
    model.observe(tokens, request);
  }
  std::vector<double> sure, unsure;
  model.estimate(drafted(0.99, 0.99), request, sure);
  model.estimate(drafted(0.6, 0.6), request, unsure);
  EXPECT_GT(sure[1], 0.85);
  EXPECT_LT(unsure[1], 0.5);
  const ChainOutlook outlook = model.outlook(0, request);
  const auto share_of_unsure = [&](DraftedBehind behind) {
    return outlook.shares[static_cast<size_t>(behind)][2];
  };
  EXPECT_LT(share_of_unsure(DraftedBehind::kSureToken), 0.1);
  EXPECT_NEAR(share_of_unsure(DraftedBehind::kText), 0.5, 0.1);
  EXPECT_GT(share_of_unsure(DraftedBehind::kUnsureToken), 0.9);
  EXPECT_GT(outlook.chances[5], outlook.chances[2] + 0.2);
  EXPECT_EQ(model.n_known(0), 600);
  EXPECT_EQ(model.n_known(1), 0) << "of the other model nothing is known";
}

// One is right where it is sure, the other where it is not.
TEST(AcceptanceModel, AProbabilityMeansSomethingElseWithEachModel) {
  AcceptanceModel learner;
  RequestAcceptance request;
  const TokenId right{1}, wrong{99};
  const auto is_right = [](size_t model, bool is_sure) { return is_sure == (model == 0); };
  const auto draft = [](size_t model, bool is_sure) {
    return is_sure ? drafted(0.99, 0.99, model) : drafted(0.6, 0.6, model);
  };
  for (int i = 0; i < 400; ++i) {
    const size_t model = i % 2;
    const bool is_sure = i % 4 < 2;
    AcceptanceModel::propose(draft(model, is_sure), request);
    learner.observe({is_right(model, is_sure) ? &right : &wrong, 1}, request);
  }
  for (const size_t model : {0, 1}) {
    for (const bool is_sure : {false, true}) {
      const double chance = first_chance(learner, draft(model, is_sure), {});
      if (is_right(model, is_sure)) {
        EXPECT_GT(chance, 0.85) << model << is_sure;
      } else {
        EXPECT_LT(chance, 0.15) << model << is_sure;
      }
    }
  }
}

TEST(AcceptanceModel, WhatIsKnownOtherwiseOfAModelCountsWhileLittleWasSeen) {
  AcceptanceModel model;
  RequestAcceptance request;
  // With a second token beside the one that it drafted.
  const auto tree = [](std::optional<double> agreement) {
    ProposedTree proposed = drafted(0.5, 0.5);
    proposed.tree.add(
        {.token = TokenId{2}, .parent = kRoot, .probability = 0.2f, .proposers = model_bit(0)});
    proposed.agreement = agreement;
    return proposed;
  };
  const auto chances = [&](std::optional<double> agreement) {
    std::vector<double> found;
    model.estimate(tree(agreement), request, found);
    return found;
  };
  EXPECT_GT(chances(0.98)[0], 0.85);
  EXPECT_LT(chances({})[0], 0.7);
  EXPECT_LT(chances(0.98)[2], chances({})[2]) << "the text takes one of them";
  const TokenId wrong{99};
  for (int i = 0; i < 300; ++i) {
    AcceptanceModel::propose(tree(0.98), request);
    model.observe({&wrong, 1}, request);
  }
  EXPECT_LT(chances(0.98)[0], 0.1);
}

// What one model is worth for a request says nothing of another.
TEST(AcceptanceModel, TellsModelsApartInARequest) {
  AcceptanceModel model;
  RequestAcceptance request;
  const TokenId wrong{99};
  const auto outlook = [&](size_t of) { return model.outlook(of, request).chances[2]; };
  const double first = outlook(0), other = outlook(1);
  for (int i = 0; i < 20; ++i) {
    AcceptanceModel::propose(drafted(0.6, 0.6), request);
    model.observe({&wrong, 1}, request);
  }
  EXPECT_LT(outlook(0), first - 0.2);
  EXPECT_EQ(outlook(1), other);
}

TEST(AcceptanceModel, GoesOnFromWhatWasLearnt) {
  AcceptanceModel model;
  RequestAcceptance request;
  const TokenId wrong{99};
  for (int i = 0; i < 200; ++i) {
    AcceptanceModel::propose(chain(1), request);
    model.observe({&wrong, 1}, request);
  }
  AcceptanceModel later;
  ASSERT_TRUE(later.restore(model.learnt()));
  EXPECT_NEAR(first_chance(later, chain(1), {}), first_chance(model, chain(1), {}), 1e-4);
  EXPECT_LT(first_chance(later, chain(1), {}), 0.2);
  std::vector<float> other = model.learnt();
  other.pop_back();
  EXPECT_FALSE(later.restore(other));
  other.push_back(std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(later.restore(other));
}

}  // namespace
}  // namespace forerun
