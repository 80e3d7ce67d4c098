#include "text/large_stack.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/error.h"

namespace forerun {
namespace {

// Uses about 1 KiB of stack per level.
size_t recurse(size_t depth) {
  volatile char frame[1024];
  frame[depth % sizeof(frame)] = 1;
  return depth == 0 ? 0 : recurse(depth - 1) + static_cast<size_t>(frame[depth % sizeof(frame)]);
}

TEST(LargeStack, HoldsDeepRecursion) {
  size_t result = 0;
  run_on_large_stack(size_t{512} << 20, [&] { result = recurse(100'000); });
  EXPECT_EQ(result, 100'000u);
}

TEST(LargeStack, PassesExceptionsOn) {
  const auto fails = [] { throw std::out_of_range("here"); };
  EXPECT_THROW(run_on_large_stack(0, fails), std::out_of_range);
}

TEST(LargeStack, SaysWhenThereIsNoRoom) {
  EXPECT_THROW(run_on_large_stack(size_t{1} << 60, [] {}), Error);
}

}  // namespace
}  // namespace forerun
