#include "core/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace forerun {
namespace {

// Hashes are stored in files: these values must never change.
TEST(StableHash, IsStable) {
  EXPECT_EQ(StableHash::of(""), 16299047724619249863u);
  EXPECT_EQ(StableHash::of("forerun"), 1749098098533654319u);
  EXPECT_EQ(StableHash::of("longer than eight bytes"), 5771457551078944329u);
}

TEST(StableHash, DependsOnEveryBitAndOnTheCuts) {
  const std::string text = "sixteen and some bytes";
  std::set<uint64_t> seen = {StableHash::of(text)};
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string other = text;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(seen.insert(StableHash::of(other)).second) << bit;
  }
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    StableHash hash;
    hash.add(std::string_view(text).substr(0, cut));
    hash.add(std::string_view(text).substr(cut));
    EXPECT_TRUE(seen.insert(hash.value()).second) << cut;
  }
}

}  // namespace
}  // namespace forerun
