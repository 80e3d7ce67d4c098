#include <forerun/drafting_methods.h>
#include <forerun/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "draft/methods.h"

namespace forerun {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<DraftingOption> all_options() {
  std::vector<DraftingOption> all = shared_drafting_options();
  for (const DraftingMethod& method : drafting_methods()) {
    all.insert(all.end(), method.options.begin(), method.options.end());
  }
  return all;
}

bool takes(const std::string& name, const std::string& value) {
  MethodOptions options;
  try {
    set_method_option(options, name, value);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(DraftingMethods, AreThoseThatDraft) {
  ASSERT_EQ(drafting_methods().size(), draft_methods().size());
  for (size_t i = 0; i < draft_methods().size(); ++i) {
    const DraftingMethod& method = drafting_methods()[i];
    EXPECT_EQ(method.name, draft_methods()[i].name);
    EXPECT_EQ(method.drafts_with, draft_methods()[i].drafts_with);
    EXPECT_THAT(method.summary, Not(IsEmpty()));
    EXPECT_EQ(&drafting_method(method.name), &method);
  }
  EXPECT_EQ(drafting_methods().front().name, "auto");
  EXPECT_THROW(drafting_method("autom"), Error);
}

TEST(DraftingMethods, HaveOptionsOfTheirOwn) {
  std::set<std::string> names;
  for (const DraftingMethod& method : drafting_methods()) {
    for (const DraftingOption& option : method.options) {
      EXPECT_THAT(option.name, StartsWith(method.name + "-"));
    }
  }
  for (const DraftingOption& option : all_options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " is there twice";
    EXPECT_THAT(option.help, Not(IsEmpty())) << option.name;
  }
  EXPECT_FALSE(drafting_method("pld").options.empty());
  EXPECT_FALSE(shared_drafting_options().empty());
  EXPECT_TRUE(drafting_method("none").options.empty());
}

// What the table says of an option holds where it is set.
TEST(DraftingMethods, SayWhatOptionsMayBe) {
  for (const DraftingOption& option : all_options()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(takes(option.name, option.usual));
    switch (option.type) {
      case OptionType::kInteger:
        EXPECT_LT(option.min, option.max);
        EXPECT_TRUE(takes(option.name, fmt::format("{}", static_cast<int64_t>(option.max))));
        EXPECT_FALSE(takes(option.name, fmt::format("{}", static_cast<int64_t>(option.max) + 1)));
        EXPECT_FALSE(takes(option.name, fmt::format("{}", static_cast<int64_t>(option.min) - 1)));
        EXPECT_FALSE(takes(option.name, fmt::format("{}.5", static_cast<int64_t>(option.min))));
        break;
      case OptionType::kNumber:
        EXPECT_LT(option.min, option.max);
        EXPECT_TRUE(takes(option.name, fmt::format("{}", option.min)));
        EXPECT_FALSE(takes(option.name, fmt::format("{}", option.min - 1)));
        EXPECT_FALSE(takes(option.name, fmt::format("{}", 1.5 * option.max)));
        break;
      case OptionType::kSwitch:
        EXPECT_TRUE(takes(option.name, "true"));
        EXPECT_TRUE(takes(option.name, "false"));
        EXPECT_FALSE(takes(option.name, "maybe"));
        break;
      case OptionType::kText:
        for (const std::string& choice : option.choices) EXPECT_TRUE(takes(option.name, choice));
        EXPECT_EQ(takes(option.name, "no such choice"), option.choices.empty());
        break;
    }
  }
}

}  // namespace
}  // namespace forerun
