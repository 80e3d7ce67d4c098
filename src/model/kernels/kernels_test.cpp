#include "model/kernels/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "core/error.h"

namespace forerun {
namespace {

class KernelsTest : public testing::Test {
 protected:
  KernelsTest() {
    if (const char* name = std::getenv(kVariable)) previous_ = name;
  }
  ~KernelsTest() override { setenv(kVariable, previous_.c_str(), 1); }

  static constexpr const char* kVariable = "FORERUN_KERNELS";
  std::string previous_;
};

TEST_F(KernelsTest, ThePortableSetIsTheLastResort) {
  ASSERT_FALSE(available_kernels().empty());
  EXPECT_STREQ(available_kernels().back()->name, "portable");
  std::set<std::string> names;
  for (const KernelSet* set : available_kernels())
    EXPECT_TRUE(names.insert(set->name).second) << set->name;
}

TEST_F(KernelsTest, TheFirstSetIsUsedUnlessAnotherIsNamed) {
  unsetenv(kVariable);
  EXPECT_EQ(&best_kernels(), available_kernels().front());
  setenv(kVariable, "", 1);
  EXPECT_EQ(&best_kernels(), available_kernels().front());
  for (const KernelSet* set : available_kernels()) {
    setenv(kVariable, set->name, 1);
    EXPECT_EQ(&best_kernels(), set);
  }
}

TEST_F(KernelsTest, AnUnknownNameIsAnErrorThatListsTheSets) {
  setenv(kVariable, "mmx", 1);
  try {
    best_kernels();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("FORERUN_KERNELS=mmx"));
    for (const KernelSet* set : available_kernels()) {
      EXPECT_THAT(error.what(), testing::HasSubstr(set->name));
    }
  }
}

TEST_F(KernelsTest, EverySetHasTheSameFormats) {
  for (const KernelSet* set : available_kernels()) {
    EXPECT_EQ(set->formats.size(), available_kernels().back()->formats.size());
    for (const WeightFormat& format : available_kernels().back()->formats) {
      const WeightFormat* found = find_format(*set, format.type);
      ASSERT_NE(found, nullptr) << set->name << ": " << ggml_type_name(format.type);
      EXPECT_EQ(found->type, format.type);
      EXPECT_EQ(found->block_size, format.block_size);
      EXPECT_EQ(found->operand, format.operand);
    }
    EXPECT_EQ(find_format(*set, GGML_TYPE_COUNT), nullptr);
  }
}

}  // namespace
}  // namespace forerun
