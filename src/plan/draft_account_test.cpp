#include "plan/draft_account.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

// The share of `n` passes before which drafts are looked for, if each time that takes `cost` and
// brings `gain`.
double share_drafted(DraftAccount& account, int n, double cost, double gain) {
  int n_drafted = 0;
  for (int i = 0; i < n; ++i) {
    if (!account.wants_drafts()) continue;
    ++n_drafted;
    account.add(cost, gain);
  }
  return static_cast<double>(n_drafted) / n;
}

TEST(DraftAccount, GoesOnWhileDraftsEarnTheirTime) {
  DraftAccount account;
  EXPECT_EQ(share_drafted(account, 1000, 0.4, 0.5), 1.0);
}

TEST(DraftAccount, GoesOnWhereLookingIsNextToFree) {
  DraftAccount account;
  EXPECT_EQ(share_drafted(account, 1000, 0.02, 0), 1.0);
}

TEST(DraftAccount, GivesUpWhatOnlyCosts) {
  DraftAccount account;
  EXPECT_LT(share_drafted(account, 1000, 0.2, 0), 0.06);
  EXPECT_LT(share_drafted(account, 10000, 0.2, 0), 0.01);
}

TEST(DraftAccount, NoticesWhenDraftsBeginToPay) {
  DraftAccount account;
  share_drafted(account, 10000, 0.2, 0);
  share_drafted(account, 2000, 0.2, 1);
  EXPECT_EQ(share_drafted(account, 1000, 0.2, 1), 1.0);
}

TEST(DraftAccount, LookupsThatWereHeldUpChangeNothing) {
  DraftAccount account;
  share_drafted(account, 100, 0.1, 0.2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(share_drafted(account, 4, 1000, 0.2), 1.0);
    EXPECT_EQ(share_drafted(account, 12, 0.1, 0.2), 1.0);
  }
}

// Files that are not in memory are slow to search at first.
TEST(DraftAccount, ForgivesTheFirstLookups) {
  DraftAccount account;
  EXPECT_EQ(share_drafted(account, 4, 100, 0), 1.0);
  EXPECT_EQ(share_drafted(account, 1000, 0.02, 0), 1.0);
}

TEST(DraftAccount, NoticesWhenLookingBecomesNextToFree) {
  DraftAccount account;
  EXPECT_LT(share_drafted(account, 25, 100, 0), 1.0);
  share_drafted(account, 200, 0.02, 0);
  EXPECT_EQ(share_drafted(account, 1000, 0.02, 0), 1.0);
}

}  // namespace
}  // namespace forerun
