#include "draft/model/token_draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "sampling/logits_fixtures.h"

namespace forerun {
namespace {

constexpr int kVocabulary = 1000;

std::vector<float> random_logits(unsigned seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

SamplingOptions warm() {
  SamplingOptions options;
  options.temperature = 0.8f;
  options.seed = 5;
  return options;
}

// Forbids the even tokens.
class OddTokens final : public Constraint {
 public:
  bool allows(TokenId token) const override { return to_int(token) % 2 == 1; }
  std::shared_ptr<const Constraint> after(TokenId /*token*/) const override { return nullptr; }
  void mask(std::span<float> logits) const override {
    for (size_t i = 0; i < logits.size(); i += 2) logits[i] = -std::numeric_limits<float>::infinity();
  }
};

class TokenDrawTest : public ::testing::Test {
 protected:
  TokenDraw draw_of(size_t i) const {
    return {.sampler = &sampler_, .state = &state_, .position = Position{7}, .logits = rows_[i]};
  }

  std::shared_ptr<Device> device_ = Device::open({.name = "cpu", .n_threads = 3, .pin_threads = false});
  Sampler sampler_{warm(), kVocabulary};
  SamplerState state_ = sampler_.state_after({});
  std::vector<std::vector<float>> rows_{random_logits(1, 1), random_logits(2, 3), random_logits(3, 30),
                                        random_logits(4, 1), random_logits(5, 1)};
  TokenDrawer drawer_;
};

TEST_F(TokenDrawTest, DrawsForManyAsForOne) {
  std::vector<TokenDraw> together;
  for (size_t i = 0; i < rows_.size(); ++i) together.push_back(draw_of(i));
  drawer_.draw(together, *device_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    TokenDraw alone = draw_of(i);
    drawer_.draw({&alone, 1}, *device_);
    SamplerScratch scratch;
    EXPECT_EQ(together[i].token, sampler_.sample(rows_[i], state_, Position{7}, scratch));
    EXPECT_EQ(together[i].token, alone.token);
    EXPECT_EQ(together[i].probability, alone.probability);
    EXPECT_EQ(together[i].likeliest.size(), alone.likeliest.size());
    EXPECT_EQ(alone.likeliest.empty(), alone.probability >= kSureDraw);
  }
  EXPECT_EQ(together[0].likeliest.size(), kLikeliestTokens);
  EXPECT_TRUE(together[2].likeliest.empty());
}

TEST_F(TokenDrawTest, WhereNoTokenIsLeftTheOthersGoOn) {
  rows_[1].assign(kVocabulary, -std::numeric_limits<float>::infinity());
  std::vector<TokenDraw> draws{draw_of(0), draw_of(1), draw_of(2)};
  drawer_.draw(draws, *device_);
  EXPECT_TRUE(draws[0].token && draws[2].token);
  EXPECT_FALSE(draws[1].token);
}

TEST_F(TokenDrawTest, ASmallerVocabularyHasNoFurtherTokens) {
  rows_[0].resize(10);
  std::vector<TokenDraw> draws{draw_of(0), draw_of(1)};
  drawer_.draw(draws, *device_);
  EXPECT_LT(to_int(draws[0].token.value()), 10);
  EXPECT_EQ(draws[0].logits.all().size(), size_t{kVocabulary});
}

// A model of fewer tokens on a GPU, which says which are the best.
TEST_F(TokenDrawTest, DrawsFromTheBestLogitsWhatAllDraw) {
  for (const size_t n : {size_t{kVocabulary}, size_t{kVocabulary - 100}}) {
    test::RowWithBest row({rows_[1].begin(), rows_[1].begin() + static_cast<std::ptrdiff_t>(n)});
    TokenDraw few = draw_of(1), all = draw_of(1);
    few.logits = row.view();
    all.logits = row.logits();
    drawer_.draw({&few, 1}, *device_);
    drawer_.draw({&all, 1}, *device_);
    EXPECT_EQ(few.token.value(), all.token.value());
    EXPECT_EQ(few.probability, all.probability);
    ASSERT_EQ(few.likeliest.size(), all.likeliest.size());
    for (size_t i = 0; i < few.likeliest.size(); ++i) {
      EXPECT_EQ(few.likeliest[i].token, all.likeliest[i].token);
    }
    EXPECT_EQ(row.n_asked(), 0);
    EXPECT_EQ(few.logits.n_vocab(), size_t{kVocabulary});
  }
}

TEST_F(TokenDrawTest, FollowsGrammarsAndKeepsDistributionsThatAreCompared) {
  SamplerState odd = state_;
  odd.constrain(std::make_shared<OddTokens>());
  std::vector<TokenDraw> draws{draw_of(0), draw_of(1), draw_of(3)};
  draws[0].state = draws[1].state = &odd;
  draws[2].keeps_distribution = true;
  drawer_.draw(draws, *device_);
  EXPECT_EQ(to_int(draws[0].token.value()) % 2, 1);
  EXPECT_EQ(to_int(draws[1].token.value()) % 2, 1);
  EXPECT_EQ(draws[0].distribution.size(), 0u);
  EXPECT_THAT(draws[2].distribution.tokens, testing::Contains(draws[2].token.value()));
}

}  // namespace
}  // namespace forerun
