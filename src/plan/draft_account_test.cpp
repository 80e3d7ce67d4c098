#include "plan/draft_account.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

// The share of `n` passes before which drafts are asked for, if each then gives `n_tokens` in
// `seconds`, where one without takes a second.
double share_drafted(DraftAccount& account, int n, double seconds, int n_tokens) {
  int n_drafted = 0;
  for (int i = 0; i < n; ++i) {
    if (!account.wants_drafts()) continue;
    ++n_drafted;
    account.add(seconds, 1.0, 1, n_tokens);
  }
  return static_cast<double>(n_drafted) / n;
}

TEST(DraftAccount, GoesOnWhileDraftsEarnTheirTime) {
  DraftAccount account;
  EXPECT_EQ(share_drafted(account, 1000, 1.5, 2), 1.0);
}

TEST(DraftAccount, GivesUpWhatOnlyCosts) {
  DraftAccount account;
  EXPECT_LT(share_drafted(account, 1000, 1.2, 1), 0.06);
  EXPECT_LT(share_drafted(account, 10000, 1.2, 1), 0.01);
}

TEST(DraftAccount, NoticesWhenDraftsBeginToPay) {
  DraftAccount account;
  share_drafted(account, 10000, 1.2, 1);
  share_drafted(account, 2000, 1.1, 2);
  EXPECT_EQ(share_drafted(account, 1000, 1.1, 2), 1.0);
}

TEST(DraftAccount, OnePassThatWasHeldUpChangesNothing) {
  DraftAccount account;
  share_drafted(account, 100, 1.1, 2);
  share_drafted(account, 1, 1000.0, 2);
  EXPECT_EQ(share_drafted(account, 100, 1.1, 2), 1.0);
}

TEST(DraftAccount, CountsTheTokensOfAllRequests) {
  DraftAccount account;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(account.wants_drafts());
    account.add(1.2, 1.0, 4, 6);  // without drafts: 1.5
  }
}

}  // namespace
}  // namespace forerun
