#include "text/sorted_pieces.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(SortedPieces, SayWhatTheyShareWithTheOneBefore) {
  const SortedPieces pieces(
      {{"the", TokenId{0}}, {"a", TokenId{1}}, {"then", TokenId{2}}, {"to", TokenId{3}}});
  ASSERT_EQ(pieces.size(), 4);
  EXPECT_EQ(pieces.piece(0), "a");
  EXPECT_EQ(pieces.n_shared(0), 0);
  EXPECT_EQ(pieces.piece(1), "the");
  EXPECT_EQ(pieces.n_shared(1), 0);
  EXPECT_EQ(pieces.piece(2), "then");
  EXPECT_EQ(pieces.n_shared(2), 3);
  EXPECT_EQ(pieces.token(2), TokenId{2});
  EXPECT_EQ(pieces.piece(3), "to");
  EXPECT_EQ(pieces.n_shared(3), 1);
}

TEST(SortedPieces, OfTheSameTextAreAllThere) {
  const SortedPieces pieces({{"a", TokenId{5}}, {"a", TokenId{2}}});
  ASSERT_EQ(pieces.size(), 2);
  EXPECT_EQ(pieces.token(0), TokenId{2});
  EXPECT_EQ(pieces.n_shared(1), 1);
}

}  // namespace
}  // namespace forerun
