#include "bench/quoted_text.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"

namespace forerun {
namespace {

using Parts = std::vector<std::string>;

TEST(QuotedText, SplitsAtWhatSeparates) {
  EXPECT_EQ(split_quoted("none,pld,swift:share=1", ','), (Parts{"none", "pld", "swift:share=1"}));
  EXPECT_EQ(split_quoted("swift:search=published:share=1", ':'),
            (Parts{"swift", "search=published", "share=1"}));
  EXPECT_EQ(split_quoted(",a,,b,", ','), (Parts{"a", "b"}));
  EXPECT_EQ(split_quoted("", ','), Parts{});
}

TEST(QuotedText, QuotesAndBackslashesLetItStandForItself) {
  EXPECT_EQ(split_quoted(R"(model="/a:b,c":tokens=3)", ':'), (Parts{R"(model="/a:b,c")", "tokens=3"}));
  EXPECT_EQ(split_quoted(R"(model=/a\:b:tokens=3)", ':'), (Parts{R"(model=/a\:b)", "tokens=3"}));
  EXPECT_EQ(split_quoted(R"("a\":b":c)", ':'), (Parts{R"("a\":b")", "c"}));
  EXPECT_EQ(split_quoted(R"(a\\:b)", ':'), (Parts{R"(a\\)", "b"}));
  EXPECT_EQ(unquoted(R"(/a\:b"c:d")"), "/a:bc:d");
  EXPECT_EQ(unquoted(R"("a\"b\\")"), R"(a"b\)");
  EXPECT_EQ(unquoted("plain"), "plain");
}

TEST(QuotedText, WhatIsNotClosedIsAnError) {
  for (const char* text : {R"(a"b)", R"(a\)", R"("a\")", R"(a""")"}) {
    EXPECT_THROW(split_quoted(text, ','), Error) << text;
    EXPECT_THROW(unquoted(text), Error) << text;
  }
}

// However each of them is written, the parts of a list are what was put into it.
TEST(QuotedText, GivesBackWhatWasWritten) {
  constexpr std::string_view kLetters = "a:,\"\\ =";
  std::mt19937 random(1);
  const auto escaped = [&](const std::string& part) {
    const bool quotes = random() % 2 == 0;
    std::string text;
    for (const char c : part) {
      if (c == '"' || c == '\\' || (!quotes && (c == ',' || c == ':'))) text.push_back('\\');
      text.push_back(c);
    }
    return quotes ? "\"" + text + "\"" : text;
  };
  for (int trial = 0; trial < 500; ++trial) {
    Parts parts(1 + random() % 4);
    std::string list;
    for (std::string& part : parts) {
      for (size_t n = 1 + random() % 6; n > 0; --n) part.push_back(kLetters[random() % kLetters.size()]);
      list += (list.empty() ? "" : ",") + escaped(part);
    }
    Parts found;
    for (const std::string& part : split_quoted(list, ',')) found.push_back(unquoted(part));
    EXPECT_EQ(found, parts) << list;
  }
}

}  // namespace
}  // namespace forerun
