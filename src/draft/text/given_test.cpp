#include "draft/text/given.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace forerun {
namespace {

std::vector<TokenId> tokens(const std::string& text) {
  std::vector<TokenId> result;
  for (const char c : text) result.push_back(TokenId{c});
  return result;
}

std::string drafted(RequestDrafter& drafter, int n = 4) {
  DraftTree tree;
  drafter.draft({.max_nodes = n, .max_depth = n}, tree);
  std::string text;
  for (const DraftNode& node : tree.nodes()) {
    EXPECT_EQ(node.source, DraftSource::kPrediction);
    text += static_cast<char>(to_int(node.token));
  }
  return text;
}

TEST(PredictionTest, GoesOnWhereTheAnswerStands) {
  const auto drafter = std::make_unique<PredictionDrafter>(tokens("the quick brown fox"));
  EXPECT_EQ(drafted(*drafter), "the ");
  drafter->append(tokens("the q"));
  EXPECT_EQ(drafted(*drafter, 6), "uick b");
}

TEST(PredictionTest, FindsItsPlaceAgain) {
  const auto drafter = std::make_unique<PredictionDrafter>(tokens("one two three four"));
  drafter->append(tokens("one 2"));
  EXPECT_EQ(drafted(*drafter), "") << "nothing like it";
  drafter->append(tokens("2 th"));
  EXPECT_EQ(drafted(*drafter), "ree ");
  drafter->append(tokens("e"));
  EXPECT_EQ(drafted(*drafter), "") << "three begins with thr";
  drafter->append(tokens("e four"));
  EXPECT_EQ(drafted(*drafter), "") << "its end";
}

TEST(PredictionTest, PrefersWhatComesLater) {
  const auto drafter = std::make_unique<PredictionDrafter>(tokens("ab1 ab2 ab3"));
  drafter->append(tokens("ab1 ab2"));
  drafter->append(tokens("xab"));
  EXPECT_EQ(drafted(*drafter, 1), "3");
}

}  // namespace
}  // namespace forerun
