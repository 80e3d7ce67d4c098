#include "plan/chain_outlook.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

constexpr size_t kSure = kSurenessBins - 1;

// A model that is sure of every token, and right with this chance.
ChainOutlook always_sure(double chance) {
  ChainOutlook outlook{};
  for (auto& shares : outlook.shares) shares[kSure] = 1;
  outlook.chances[kSure] = chance;
  return outlook;
}

ChainPrices prices_of(double token, double row) {
  ChainPrices prices{.token = token, .rows = {}};
  prices.rows.fill(row);
  return prices;
}

TEST(ChainOutlook, CountsTokensLessWhatTheyCost) {
  const ChainPrices prices = prices_of(0.1, 0.05);
  const auto value = [&](int n_most) {
    return value_of_drafting(always_sure(0.9), DraftedBehind::kText, 1, {}, prices, n_most);
  };
  EXPECT_NEAR(value(1), 0.9 - 0.15, 1e-12);
  EXPECT_NEAR(value(2), 0.9 + 0.81 - 0.3, 1e-12);
  EXPECT_GT(value(16), value(2));
  // Behind a chain that the text hardly comes to, nothing is worth it.
  EXPECT_LT(value_of_drafting(always_sure(0.9), DraftedBehind::kSureToken, 0.1, {}, prices, 16), 0);
}

// Half of the tokens behind the text are wrong, and the model knows it. On average a token does not pay.
TEST(ChainOutlook, ChainsThatEndInTimePayWhereTokensOnAverageDoNot) {
  ChainOutlook outlook = always_sure(0.98);
  outlook.shares[static_cast<size_t>(DraftedBehind::kText)] = {0.5, 0, 0, 0, 0, 0.5};
  const ChainPrices prices = prices_of(0.55, 0);
  EXPECT_LT(value_of_drafting(outlook, DraftedBehind::kText, 1, {}, prices, 1), 0);
  EXPECT_GT(value_of_drafting(outlook, DraftedBehind::kText, 1, {}, prices, 8), 0.3);
}

TEST(ChainOutlook, CountsWhatItAddsToTexts) {
  const ChainPrices prices = prices_of(0.3, 0.05);
  const auto beside = [&](double chance) {
    TextLevels texts;
    for (size_t level = 0; level < 4; ++level) {
      texts.chance[level] = chance;
      texts.n_nodes[level] = 1;
    }
    return value_of_drafting(always_sure(0.9), DraftedBehind::kText, 1, texts, prices, 4);
  };
  EXPECT_GT(beside(0.1), 0.5);
  EXPECT_GT(beside(0.1), beside(0.3));
  EXPECT_LT(beside(0.9), 0);
}

TEST(ChainOutlook, RowsCostWhatTheNextStepsDo) {
  // Two rows for the price of one, and nearly none for the first.
  std::array<double, kMostLevels + 1> costs{};
  for (size_t n = 1; n < costs.size(); ++n) costs[n] = 0.1 + 0.8 * static_cast<double>(n / 2);
  const auto prices = row_prices(costs);
  EXPECT_DOUBLE_EQ(prices[0], 0.1);
  for (size_t level = 1; level + 1 < prices.size(); ++level) {
    EXPECT_NEAR(prices[level], 0.4, 1e-9) << level;
    EXPECT_GE(prices[level + 1], prices[level] - 1e-12);
  }
}

TEST(ChainOutlook, IsLearnt) {
  ChainRecord record;
  for (int i = 0; i < 400; ++i) {
    record.observe(DraftedBehind::kText, 0.5, i % 4 == 0);
    record.observe(DraftedBehind::kSureToken, 0.999, true);
  }
  std::vector<float> numbers;
  record.add_to(numbers);
  ChainRecord later;
  later.restore(numbers);
  EXPECT_EQ(later.n_seen(), 800);
  for (const ChainRecord& known : {record, later}) {
    const ChainOutlook outlook = known.outlook(0);
    EXPECT_NEAR(outlook.chances[1], 0.25, 0.1);
    EXPECT_GT(outlook.chances[kSure], 0.95);
    EXPECT_GT(outlook.shares[static_cast<size_t>(DraftedBehind::kText)][1], 0.9);
    EXPECT_GT(outlook.shares[static_cast<size_t>(DraftedBehind::kSureToken)][kSure], 0.9);
  }
  EXPECT_LT(record.outlook(-1).chances[1], record.outlook(0).chances[1]);
}

TEST(ChainOutlook, BeginsWithWhatIsKnownOtherwise) {
  const auto value = [](const ChainRecord& record, std::optional<double> agreement) {
    return value_of_drafting(record.outlook(0, agreement), DraftedBehind::kText, 1, {},
                             prices_of(0.3, 0.05), 8);
  };
  ChainRecord record;
  EXPECT_LT(value(record, 0.3), value(record, std::nullopt));
  EXPECT_GT(value(record, 0.95), value(record, std::nullopt) + 0.5);
  // What was seen counts more in the end.
  for (int i = 0; i < 400; ++i) record.observe(DraftedBehind::kText, 0.97, i % 3 == 0);
  EXPECT_NEAR(value(record, 0.95), value(record, std::nullopt), 0.1);
}

}  // namespace
}  // namespace forerun
