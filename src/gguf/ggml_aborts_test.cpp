#include "gguf/ggml_aborts.h"

#include <ggml.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace forerun {
namespace {

TEST(GgmlAborts, ThrowWhileTheyAreToThrow) {
  const GgmlAbortsThrow guard;
  EXPECT_THROW(ggml_abort("file.c", 1, "no %s", "way"), std::runtime_error);
  {
    const GgmlAbortsThrow inner;
    EXPECT_THROW(GGML_ABORT("again"), std::runtime_error);
  }
  EXPECT_THROW(GGML_ABORT("still"), std::runtime_error);
}

TEST(GgmlAbortsDeathTest, EndTheProcessOtherwise) {
  { const GgmlAbortsThrow guard; }
  EXPECT_DEATH(GGML_ABORT("no way"), "no way");
}

}  // namespace
}  // namespace forerun
