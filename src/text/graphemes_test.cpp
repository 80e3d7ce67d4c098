#include "text/graphemes.h"

#include <gtest/gtest.h>

#include <clocale>
#include <random>
#include <string>
#include <vector>

namespace forerun {
namespace {

class Graphemes : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr); }
  void TearDown() override { std::setlocale(LC_CTYPE, "C"); }

  static std::vector<std::wstring> forward(const std::wstring& text) {
    std::vector<std::wstring> parts;
    for (size_t i = 0; i < text.size();) {
      const size_t end = grapheme_end(text, i);
      parts.push_back(text.substr(i, end - i));
      i = end;
    }
    return parts;
  }

  static std::vector<std::wstring> backward(const std::wstring& text) {
    std::vector<std::wstring> parts;
    for (size_t i = text.size(); i > 0;) {
      const size_t begin = grapheme_begin(text, i);
      parts.insert(parts.begin(), text.substr(begin, i - begin));
      i = begin;
    }
    return parts;
  }
};

TEST_F(Graphemes, EachIsOneCharacterToItsReader) {
  const std::vector<std::wstring> graphemes = {
      L"a",
      L"e\u0301",                                             // an accent
      L"o\u0302\u0323",                                       // two
      L"\u00E9",                                              // one that is a single code point
      L"\u4E2D",                                              // a wide one
      L"\U0001F642",                                          // an emoji
      L"\U0001F44D\U0001F3FD",                                // a skin tone
      L"\u2764\uFE0F",                                        // a variation selector
      L"1\uFE0F\u20E3",                                       // a keycap
      L"\U0001F469\u200D\U0001F469\u200D\U0001F467",          // a family
      L"\U0001F3F3\uFE0F\u200D\U0001F308",                    // a joiner after a selector
      L"\U0001F469\U0001F3FD\u200D\u2695\uFE0F",              // a joiner after a skin tone
      L"\U0001F1E9\U0001F1EA",                                // a flag
      L"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E007F",  // a flag of tags
      L"\u1112\u1161\u11AB",                                  // a Hangul syllable in parts
      L"\n",
  };
  std::wstring all;
  for (const std::wstring& grapheme : graphemes) {
    EXPECT_EQ(grapheme_end(grapheme, 0), grapheme.size());
    EXPECT_EQ(grapheme_begin(grapheme, grapheme.size()), 0u);
    all += grapheme;
  }
  EXPECT_EQ(forward(all), graphemes);
  EXPECT_EQ(backward(all), graphemes);
}

TEST_F(Graphemes, WhatDoesNotBelongTogetherIsApart) {
  const std::wstring german = L"\U0001F1E9\U0001F1EA", french = L"\U0001F1EB\U0001F1F7";
  EXPECT_EQ(backward(german + french + L"\U0001F1E9"),
            (std::vector<std::wstring>{german, french, L"\U0001F1E9"}));
  // A joiner between letters joins nothing, and neither does one behind no picture.
  EXPECT_EQ(backward(L"a\u200Db"), (std::vector<std::wstring>{L"a\u200D", L"b"}));
  EXPECT_EQ(backward(L"a\u200D\U0001F467"), (std::vector<std::wstring>{L"a\u200D", L"\U0001F467"}));
  // A line's end takes no accent.
  EXPECT_EQ(backward(L"a\n\u0301"), (std::vector<std::wstring>{L"a", L"\n", L"\u0301"}));
  EXPECT_EQ(backward(L"a\r\u0301b"), (std::vector<std::wstring>{L"a", L"\r", L"\u0301", L"b"}));
}

TEST_F(Graphemes, BothDirectionsAgree) {
  const std::wstring alphabet =
      L"ab\n\u0301\u0323\u200D\uFE0F\U0001F3FD\U0001F1E9\U0001F1EA\U0001F469\U0001F467\u2764";
  std::mt19937 rng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::wstring text;
    for (size_t n = rng() % 12; n > 0; --n) text += alphabet[rng() % alphabet.size()];
    ASSERT_EQ(forward(text), backward(text));
  }
}

}  // namespace
}  // namespace forerun
