#include "cli/terminal/message_input.h"

#include <gtest/gtest.h>

#include <vector>

namespace forerun {
namespace {

// The messages that lines make; all but complete ones at the end are left out.
std::vector<Input> messages(const std::vector<std::string>& lines) {
  MessageInput input;
  std::vector<Input> all;
  for (const std::string& line : lines) {
    if (auto message = input.push(line)) all.push_back(*message);
  }
  return all;
}

std::string only_text(const std::vector<std::string>& lines) {
  const auto all = messages(lines);
  EXPECT_EQ(all.size(), 1u);
  if (all.size() != 1) return "";
  EXPECT_FALSE(all[0].is_command);
  // The history's entry says the same again, at once.
  const auto again = messages({all[0].source});
  EXPECT_EQ(again.size(), 1u);
  if (again.size() == 1) {
    EXPECT_EQ(again[0].text, all[0].text);
    EXPECT_FALSE(again[0].is_command);
    EXPECT_EQ(again[0].source, all[0].source);
  }
  return all[0].text;
}

TEST(MessageInput, ALineIsAMessage) {
  EXPECT_EQ(only_text({"hello"}), "hello");
  EXPECT_EQ(only_text({""}), "");
  EXPECT_EQ(messages({"one", "two"}).size(), 2u);
}

TEST(MessageInput, ABackslashContinuesTheLine) {
  EXPECT_EQ(only_text({"one\\", "two\\", "three"}), "one\ntwo\nthree");
  EXPECT_EQ(only_text({
                "one\\",
                "",
            }),
            "one");
  EXPECT_EQ(only_text({"a \\ b"}), "a \\ b");
  EXPECT_EQ(only_text({"a\\", "\"\"\"b"}), "a\n\"\"\"b");
}

TEST(MessageInput, QuotesMakeABlock) {
  EXPECT_EQ(only_text({"\"\"\"", "one", "", "  two \\", "\"\"\""}), "one\n\n  two \\");
  EXPECT_EQ(only_text({"\"\"\"one", "two\"\"\""}), "one\ntwo");
  EXPECT_EQ(only_text({"\"\"\"one\"\"\""}), "one");
  EXPECT_EQ(only_text({"\"\"\"", "", "one", "", "\"\"\""}), "\none\n");
  EXPECT_EQ(only_text({"\"\"\"", "/exit", "\"\"\""}), "/exit");
  EXPECT_EQ(only_text({"\"\"\"\"\"\""}), "");
  EXPECT_TRUE(messages({"\"\"\"", "one", "two"}).empty());
}

TEST(MessageInput, APasteIsTakenAsItIs) {
  EXPECT_EQ(only_text({"one\ntwo \\\nthree\n"}), "one\ntwo \\\nthree");
  EXPECT_EQ(only_text({"\"\"\"A module.\"\"\"\nimport os"}), "\"\"\"A module.\"\"\"\nimport os");
  EXPECT_EQ(only_text({"\"\"\"", "one\ntwo", "\"\"\""}), "one\ntwo");
  EXPECT_EQ(only_text({"about this:\\", "one\ntwo"}), "about this:\none\ntwo");
}

TEST(MessageInput, SlashesAreCommandsAndTwoAreNone) {
  const auto all = messages({"/set temp 0.2", "/usr/bin is", "//usr/bin is", "/system a\\", "b", "/"});
  ASSERT_EQ(all.size(), 5u);
  EXPECT_TRUE(all[0].is_command);
  EXPECT_EQ(all[0].text, "set temp 0.2");
  EXPECT_TRUE(all[1].is_command);
  EXPECT_FALSE(all[2].is_command);
  EXPECT_EQ(all[2].text, "/usr/bin is");
  EXPECT_TRUE(all[3].is_command);
  EXPECT_EQ(all[3].text, "system a\nb");
  EXPECT_TRUE(all[4].is_command);
  EXPECT_EQ(only_text({"//usr/bin is"}), "/usr/bin is");
}

TEST(MessageInput, TheEndCompletesWhatIsOpen) {
  MessageInput input;
  EXPECT_FALSE(input.finish());
  EXPECT_FALSE(input.push("one\\"));
  EXPECT_TRUE(input.is_open());
  EXPECT_EQ(input.finish()->text, "one");
  EXPECT_FALSE(input.is_open());
  EXPECT_FALSE(input.push("\"\"\"two"));
  EXPECT_FALSE(input.push("three"));
  EXPECT_EQ(input.finish()->text, "two\nthree");
  EXPECT_EQ(input.push("four")->text, "four");
}

}  // namespace
}  // namespace forerun
