#include "draft/text/child_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace forerun {
namespace {

TEST(ChildMap, IsEmptyAtFirst) {
  const ChildMap map;
  EXPECT_EQ(map.size(), 0u);
  EXPECT_EQ(map.find(0, TokenId{0}), ChildMap::kNone);
}

// Few keys, so that they are set, replaced and erased again and again, and lie in long
// chains of neighbours.
TEST(ChildMap, DoesWhatAnOrderedMapDoes) {
  std::mt19937 random(1);
  for (const int n_keys : {3, 40, 5000}) {
    ChildMap map;
    std::map<std::pair<int32_t, int32_t>, int32_t> expected;
    for (int step = 0; step < 40'000; ++step) {
      const auto parent = static_cast<int32_t>(random() % static_cast<unsigned>(n_keys));
      const auto token = static_cast<int32_t>(random() % 3);
      if (random() % 2 == 0) {
        map.set(parent, TokenId{token}, step);
        expected[{parent, token}] = step;
      } else if (expected.erase({parent, token}) > 0) {
        map.erase(parent, TokenId{token});
      }
      ASSERT_EQ(map.size(), expected.size());
      const auto found = expected.find({parent, 1});
      ASSERT_EQ(map.find(parent, TokenId{1}), found == expected.end() ? ChildMap::kNone : found->second);
    }
    for (const auto& [key, child] : expected) EXPECT_EQ(map.find(key.first, TokenId{key.second}), child);
  }
}

}  // namespace
}  // namespace forerun
