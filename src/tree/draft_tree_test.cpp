#include "tree/draft_tree.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

TEST(DraftTree, LinksChildrenInOrder) {
  DraftTree tree;
  const int32_t a = tree.add({.token = TokenId{10}});
  const int32_t b = tree.add({.token = TokenId{11}, .parent = a});
  const int32_t c = tree.add({.token = TokenId{12}});
  const int32_t d = tree.add({.token = TokenId{13}, .parent = a});
  EXPECT_EQ(tree.first_child(kRoot), a);
  EXPECT_EQ(tree.next_sibling(a), c);
  EXPECT_EQ(tree.next_sibling(c), DraftTree::kNone);
  EXPECT_EQ(tree.first_child(a), b);
  EXPECT_EQ(tree.next_sibling(b), d);
  EXPECT_EQ(tree.first_child(b), DraftTree::kNone);
  EXPECT_EQ(tree.n_children(kRoot), 2);
  EXPECT_EQ(tree.depth(kRoot), 0);
  EXPECT_EQ(tree.depth(c), 1);
  EXPECT_EQ(tree.depth(d), 2);
  EXPECT_EQ(tree.max_depth(), 2);
  EXPECT_EQ(tree.find_child(a, TokenId{13}), d);
  EXPECT_EQ(tree.find_child(kRoot, TokenId{13}), std::nullopt);
}

TEST(DraftTree, PrunesToTheLikeliestChain) {
  DraftTree tree;
  tree.add({.token = TokenId{1}, .score = 0.4f});
  const int32_t b = tree.add({.token = TokenId{2}, .score = 0.5f});
  tree.add({.token = TokenId{3}, .parent = 0, .score = 0.4f});
  const int32_t c = tree.add({.token = TokenId{4}, .parent = b, .score = 0.2f});
  tree.add({.token = TokenId{5}, .parent = b, .score = 0.2f});
  tree.add({.token = TokenId{6}, .parent = c, .score = 0.1f});
  tree.prune_to_chain();
  ASSERT_EQ(tree.size(), 3);
  EXPECT_EQ(tree[0].token, TokenId{2});
  EXPECT_EQ(tree[1].token, TokenId{4});
  EXPECT_EQ(tree[2].token, TokenId{6});
  EXPECT_EQ(tree.max_depth(), 3);
  tree.prune_to_chain();
  EXPECT_EQ(tree.size(), 3);
}

TEST(DraftTree, PrunesAndKeepsTheOrder) {
  DraftTree tree;
  const int32_t a = tree.add({.token = TokenId{1}, .score = 0.9f});
  tree.add({.token = TokenId{2}, .score = 0.1f});
  const int32_t c = tree.add({.token = TokenId{3}, .parent = a, .score = 0.5f});
  tree.add({.token = TokenId{4}, .parent = c});
  tree.set_distribution(c, {.tokens = {TokenId{4}}, .logprobs = {0.0f}});
  tree.set_distribution(a, {.tokens = {TokenId{3}}, .logprobs = {0.0f}});
  tree.prune({true, false, true, false});
  ASSERT_EQ(tree.size(), 2);
  EXPECT_EQ(tree[1].token, TokenId{3});
  EXPECT_EQ(tree[1].parent, 0);
  EXPECT_EQ(tree.max_depth(), 2);
  ASSERT_NE(tree.distribution(0), nullptr);
  EXPECT_EQ(tree.distribution(0)->tokens.front(), TokenId{3});
  ASSERT_NE(tree.distribution(1), nullptr);
  EXPECT_EQ(tree.distribution(1)->tokens.front(), TokenId{4});
  tree.clear();
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.distribution(0), nullptr);
}

TEST(DraftTreeDeathTest, RefusesEqualSiblings) {
  DraftTree tree;
  tree.add({.token = TokenId{1}});
  EXPECT_DEATH(tree.add({.token = TokenId{1}}), "");
}

}  // namespace
}  // namespace forerun
