#include "hub/file_lock.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

namespace forerun {
namespace {

struct GaveUp : std::runtime_error {
  GaveUp() : std::runtime_error("gave up") {}
};

class FileLockTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  const std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) /
                                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FileLockTest, KeepsItsTextForTheNext) {
  {
    FileLock(path_, [] {}).write("a longer text");
  }
  {
    FileLock lock(path_, [] {});
    EXPECT_EQ(lock.read(), "a longer text");
    lock.write("text");
  }
  FileLock lock(path_, [] {});
  EXPECT_EQ(lock.read(), "text");
  lock.remove();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(FileLockTest, IsHadByOneAtATime) {
  std::optional<FileLock> first(std::in_place, path_, [] {});
  EXPECT_THROW(FileLock(path_, [] { throw GaveUp(); }), GaveUp);
  // Whoever waits for one whose file is removed gets that of the new file.
  FileLock second(path_, [&] {
    if (first) first->remove();
    first.reset();
  });
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_THROW(FileLock(path_, [] { throw GaveUp(); }), GaveUp);
}

}  // namespace
}  // namespace forerun
