// What the tests of drafters share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "core/test_tokens.h"
#include "draft/drafter.h"

namespace forerun {

inline int random_int(std::mt19937& random, int min, int max) {
  return min + static_cast<int>(random() % static_cast<unsigned>(max - min + 1));
}

// A text that repeats pieces of itself, as real ones do.
inline Tokens random_tokens(std::mt19937& random, int length, int n_letters) {
  Tokens text;
  while (static_cast<int>(text.size()) < length) {
    if (text.size() > 4 && random() % 8 == 0) {
      const size_t begin = random() % text.size();
      const size_t n = std::min<size_t>(1 + random() % 20, text.size() - begin);
      for (size_t i = 0; i < n; ++i) text.push_back(text[begin + i]);
    } else {
      text.push_back(TokenId{random_int(random, 0, n_letters - 1)});
    }
  }
  text.resize(static_cast<size_t>(length));
  return text;
}

inline DraftTree draft(RequestDrafter& drafter,
                       const DraftLimits& limits = {.max_nodes = 64, .max_depth = 64}) {
  DraftTree tree;
  drafter.draft(limits, tree);
  return tree;
}

inline Tokens path_to(const DraftTree& tree, int32_t node) {
  Tokens path;
  for (; node != kRoot; node = tree[node].parent) path.insert(path.begin(), tree[node].token);
  return path;
}

// The tree as its paths from the root, with the nodes' scores.
inline std::map<Tokens, float> paths(const DraftTree& tree) {
  std::map<Tokens, float> result;
  for (int32_t node = 0; node < tree.size(); ++node) result[path_to(tree, node)] = tree[node].score;
  return result;
}

// The tokens of a tree that is a chain.
inline Tokens chain(const DraftTree& tree) {
  EXPECT_EQ(tree.max_depth(), tree.size());
  return tree.empty() ? Tokens{} : path_to(tree, tree.size() - 1);
}

// What every tree of every drafter keeps to (that siblings differ, the tree itself checks).
inline void expect_sound(const DraftTree& tree, const DraftLimits& limits) {
  EXPECT_LE(tree.size(), limits.max_nodes);
  EXPECT_LE(tree.max_depth(), limits.max_depth);
  for (const DraftNode& node : tree.nodes()) {
    EXPECT_GT(node.score, 0.0f);
    EXPECT_LE(node.score, node.parent == kRoot ? 1.0f : tree[node.parent].score);
    EXPECT_GE(node.match_length, 0);
  }
}

}  // namespace forerun
