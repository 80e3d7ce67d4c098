#include "lookahead/cost.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "lookahead/test_token.h"

namespace forerun {
namespace {

using test::drafted;

// A pass takes 10 and 0.2 more for each row.
const Calibration kCosts{.curve = CostCurve({{.n_rows = 1, .seconds = 10, .seconds_per_token = 0},
                                             {.n_rows = 51, .seconds = 20, .seconds_per_token = 0}}),
                         .blocks = {}};

// A text each of whose tokens a draft says with some probability, and is right with that chance;
// easy and hard ones come in runs.
class Text {
 public:
  explicit Text(int n) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform;
    bool is_easy = true;
    for (int i = 0; i < n; ++i) {
      if (uniform(random) < 0.25) is_easy = !is_easy;
      const double probability = is_easy ? 0.97 : 0.35;
      tokens_.push_back({probability, uniform(random) < probability});
    }
  }
  struct Token {
    double probability;
    bool agrees;
  };
  size_t size() const { return tokens_.size(); }
  const Token& operator[](size_t i) const { return tokens_[i]; }

 private:
  std::vector<Token> tokens_;
};

// Tokens per second when `rule` ends the drafts.
double rate(Lookahead& rule, double token_seconds, const Text& text) {
  double seconds = 0;
  size_t at = 0;
  while (at + 31 < text.size()) {
    rule.begin({.n_context = 0, .token_seconds = token_seconds});
    ChainOutcome outcome;
    for (int depth = 1; depth <= 30; ++depth) {
      const Text::Token& next = text[at + static_cast<size_t>(depth) - 1];
      if (outcome.n_agreed == outcome.n_drafted) {
        ++outcome.n_tested;
        outcome.n_agreed += next.agrees ? 1 : 0;
      }
      ++outcome.n_drafted;
      if (!rule.goes_on(drafted(depth, next.probability))) break;
    }
    rule.observe(outcome);
    at += static_cast<size_t>(outcome.n_agreed) + 1;
    seconds += outcome.n_drafted * token_seconds + kCosts.curve.pass(outcome.n_drafted + 1, 0);
  }
  return static_cast<double>(at) / seconds;
}

class FixedRule final : public Lookahead {
 public:
  explicit FixedRule(int n) : n_(n) {}
  bool goes_on(const DraftedToken& token) override { return token.depth < n_; }

 private:
  int n_;
};

TEST(CostLookahead, IsFasterThanEveryFixedLength) {
  const Text text(20000);
  for (const double seconds : {0.5, 1.5, 4.0}) {
    CostLookahead policy(kCosts);
    const double found = rate(*policy.begin(), seconds, text);
    for (int n = 1; n <= 20; ++n) {
      FixedRule fixed(n);
      EXPECT_GT(found, 1.02 * rate(fixed, seconds, text)) << n << " tokens of " << seconds;
    }
  }
}

TEST(CostLookahead, StopsAtOnceWhereDraftsAreDear) {
  CostLookahead policy(kCosts);
  const auto rule = policy.begin();
  rate(*rule, 9.0, Text(2000));
  rule->begin({.n_context = 0, .token_seconds = 9.0});
  EXPECT_FALSE(rule->goes_on(drafted(1, 0.35)));
}

TEST(CostLookahead, LearnsThatProbabilitiesLie) {
  CostLookahead policy(kCosts);
  const auto rule = policy.begin();
  const DraftStart start{.n_context = 0, .token_seconds = 2};
  rule->begin(start);
  EXPECT_TRUE(rule->goes_on(drafted(1, 0.97)));
  for (int i = 0; i < 300; ++i) {
    rule->begin(start);
    rule->goes_on(drafted(1, 0.97));
    rule->observe({.n_tested = 1, .n_agreed = 0, .n_drafted = 1});
  }
  rule->begin(start);
  EXPECT_FALSE(rule->goes_on(drafted(1, 0.97))) << "never taken";
}

}  // namespace
}  // namespace forerun
