#include "retrieval/child_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace forerun {
namespace {

TEST(ChildMap, IsEmptyAtFirst) {
  const ChildMap map;
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find(0, TokenId{0}), ChildMap::kNone);
}

TEST(ChildMap, IsEmptyWhenCleared) {
  ChildMap map;
  for (int32_t i = 1; i < 1000; ++i) map.set(i / 3, TokenId{i % 3}, i);
  map.clear();
  EXPECT_EQ(map.size(), 0u);
  for (int32_t i = 1; i < 1000; ++i) EXPECT_EQ(map.find(i / 3, TokenId{i % 3}), ChildMap::kNone);
  map.set(0, TokenId{2}, 1);
  EXPECT_EQ(map.find(0, TokenId{2}), 1);
}

// Few keys, so that they are set, replaced and erased again and again, and lie in long
// chains of neighbours; and the numbers of children that are gone come back, as a trie's do.
TEST(ChildMap, DoesWhatAnOrderedMapDoes) {
  std::mt19937 random(1);
  for (const int n_keys : {3, 40, 5000}) {
    ChildMap map;
    std::map<std::pair<int32_t, int32_t>, int32_t> expected;
    std::vector<int32_t> unused;
    int32_t n_used = 0;
    for (int step = 0; step < 40'000; ++step) {
      const auto parent = static_cast<int32_t>(random() % static_cast<unsigned>(n_keys));
      const auto token = static_cast<int32_t>(random() % 3);
      const auto before = expected.find({parent, token});
      const bool is_there = before != expected.end();
      const int32_t gone = is_there ? before->second : ChildMap::kNone;
      if (random() % 2 == 0) {
        int32_t child = ++n_used;
        if (!unused.empty()) {
          child = unused.back();
          unused.pop_back();
          --n_used;
        }
        map.set(parent, TokenId{token}, child);
        expected[{parent, token}] = child;
      } else if (is_there) {
        map.erase(parent, TokenId{token});
        expected.erase(before);
      }
      if (is_there) unused.push_back(gone);
      ASSERT_EQ(map.size(), expected.size());
      const auto found = expected.find({parent, 1});
      ASSERT_EQ(map.find(parent, TokenId{1}), found == expected.end() ? ChildMap::kNone : found->second);
    }
    for (const auto& [key, child] : expected) EXPECT_EQ(map.find(key.first, TokenId{key.second}), child);
  }
}

}  // namespace
}  // namespace forerun
