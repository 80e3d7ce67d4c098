#include "sampling/logits_view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sampling/logits_fixtures.h"

namespace forerun {
namespace {

using namespace test;

std::vector<float> normal_logits(unsigned seed, size_t n) {
  std::mt19937 random(seed);
  return odd_logits(random, n, Odd::kNothing);
}

TEST(LogitsView, TellsOfTheBestWhatAllWouldTell) {
  RowWithBest row(normal_logits(1, 3'000));
  const LogitsView few = row.view(), all(row.logits());
  EXPECT_EQ(few.n_vocab(), all.n_vocab());
  EXPECT_EQ(few.best().size(), kBestLogits);
  EXPECT_TRUE(all.best().empty());
  EXPECT_EQ(few.sums().total, all.sums().total);
  SelectionScratch scratch;
  std::vector<ScoredToken> best, expected;
  for (const size_t k : {size_t{1}, size_t{10}, kBestLogits}) {
    few.top(k, scratch, best);
    all.top(k, scratch, expected);
    ASSERT_EQ(best.size(), k);
    for (size_t i = 0; i < k; ++i) {
      EXPECT_EQ(best[i].token, expected[i].token);
      EXPECT_EQ(few.logit(best[i].token), all.logit(best[i].token));
      EXPECT_EQ(few.most_of(best[i].token), all.most_of(best[i].token));
    }
  }
  EXPECT_EQ(row.n_asked(), 0);
}

TEST(LogitsView, AsksForAllWhereTheBestDoNotTell) {
  RowWithBest row(normal_logits(2, 3'000));
  const LogitsView few = row.view();
  SelectionScratch scratch;
  std::vector<ScoredToken> best;
  few.top(kBestLogits + 1, scratch, best);
  EXPECT_EQ(best.size(), kBestLogits + 1);
  const TokenId other = best.back().token;
  EXPECT_EQ(few.logit(other), best.back().logit);
  EXPECT_EQ(row.n_asked(), 2);
  EXPECT_EQ(few.most_of(other), few.best().back().logit);  // a bound
  EXPECT_GE(few.most_of(other), few.logit(other));
}

TEST(LogitsView, WhereFewArePossibleOthersAreNot) {
  std::vector<float> logits(500, -INFINITY);
  logits[7] = 1;
  RowWithBest row(std::move(logits));
  EXPECT_EQ(row.view().most_of(TokenId{7}), 1);
  EXPECT_EQ(row.view().most_of(TokenId{8}), -INFINITY);
}

TEST(LogitsView, FitsAnotherVocabulary) {
  RowWithBest row(normal_logits(3, 600));
  std::vector<float> memory;
  const LogitsView larger = row.view().fitted(700, memory);
  EXPECT_EQ(larger.best().size(), kBestLogits);
  EXPECT_EQ(row.n_asked(), 0);
  ASSERT_EQ(larger.all().size(), 700u);
  EXPECT_EQ(larger.all()[599], row.logits()[599]);
  EXPECT_EQ(larger.all()[600], -INFINITY);
  std::vector<float> unused;
  const LogitsView smaller = row.view().fitted(100, unused);
  EXPECT_TRUE(smaller.best().empty());
  ASSERT_EQ(smaller.all().size(), 100u);
  EXPECT_EQ(smaller.all()[99], row.logits()[99]);
  EXPECT_EQ(row.view().fitted(600, unused).best().size(), kBestLogits);
}

}  // namespace
}  // namespace forerun
