#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace forerun {
namespace {

// An independent decoder to test against: decodes the bits first and then asks
// whether the code point was allowed and written in its shortest form.
bool reference_valid(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) {
      return static_cast<unsigned>(static_cast<unsigned char>(text[k]));
    };
    const unsigned first = byte(i);
    const size_t n = first < 0x80           ? 1
                     : (first >> 5) == 0x06 ? 2
                     : (first >> 4) == 0x0E ? 3
                     : (first >> 3) == 0x1E ? 4
                                            : 0;
    if (n == 0 || i + n > text.size()) return false;
    unsigned code = n == 1 ? first : first & (0x7Fu >> n);
    for (size_t k = 1; k < n; ++k) {
      if ((byte(i + k) & 0xC0u) != 0x80u) return false;
      code = code << 6 | (byte(i + k) & 0x3Fu);
    }
    const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < smallest[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    i += n;
  }
  return true;
}

std::string random_bytes(std::mt19937& rng, size_t n) {
  // Bytes that often continue each other, so that all kinds of sequences occur.
  static const std::string alphabet =
      "az\x80\x8F\x90\x9F\xA0\xBF\xC0\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF1\xF4\xF5\xFF";
  std::string bytes;
  for (size_t i = 0; i < n; ++i) bytes += alphabet[rng() % alphabet.size()];
  return bytes;
}

TEST(Utf8, ValidTexts) {
  for (const char* text :
       {"", "plain ASCII", "Grüße", "漢字かな", "🙂👩‍👩‍👧", "\x7F", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  }
  EXPECT_TRUE(is_valid_utf8(std::string_view("a\0b", 3)));
}

TEST(Utf8, SaysWhereTextIsInvalid) {
  EXPECT_EQ(first_invalid_byte("\xC0\x80"), 0u);                // overlong
  EXPECT_EQ(first_invalid_byte("abc\xE0\x80\x80"), 3u);         // overlong
  EXPECT_EQ(first_invalid_byte("é\xED\xA0\x80"), 2u);           // a surrogate
  EXPECT_EQ(first_invalid_byte("\xF4\x90\x80\x80"), 0u);        // above U+10FFFF
  EXPECT_EQ(first_invalid_byte("12345678\x80"), 8u);            // right after an ASCII word
  EXPECT_EQ(first_invalid_byte("1234567890 漢\xE6\xBC"), 14u);  // cut off at the end
  EXPECT_EQ(first_invalid_byte("\xFF"), 0u);
}

TEST(Utf8, AgreesWithReferenceOnRandomBytes) {
  std::mt19937 rng(1);
  size_t n_valid = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string bytes = random_bytes(rng, rng() % 6);
    ASSERT_EQ(is_valid_utf8(bytes), reference_valid(bytes));
    n_valid += is_valid_utf8(bytes);
  }
  EXPECT_GT(n_valid, 1000u);
}

TEST(Utf8Stream, HoldsACharacterUntilItIsWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.n_pending(), 2u);
  EXPECT_EQ(stream.push("\x99"), "");
  EXPECT_EQ(stream.push("\x82!"), "🙂!");
  EXPECT_EQ(stream.n_pending(), 0u);
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, ReplacesInvalidBytesAtOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xFF"), "\uFFFD");
  EXPECT_EQ(stream.push("\x80x"), "\uFFFDx");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("x"), "\uFFFDx");                        // one per maximal prefix
  EXPECT_EQ(stream.push("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate never becomes valid
}

TEST(Utf8Stream, FlushReplacesAnIncompleteTail) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("ok\xE6\xBC"), "ok");
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.push("\xA2"), "\uFFFD");  // what came before was forgotten
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, ResultIsValidAndIndependentOfTheCuts) {
  std::mt19937 rng(2);
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes = random_bytes(rng, 1 + rng() % 24);
    Utf8Stream whole;
    std::string expected = whole.push(bytes);
    expected += whole.flush();
    ASSERT_TRUE(reference_valid(expected));
    if (reference_valid(bytes)) {
      ASSERT_EQ(expected, bytes);
    }

    Utf8Stream pieces;
    std::string got;
    for (size_t pos = 0; pos < bytes.size();) {
      const size_t n = rng() % 4;
      const std::string text = pieces.push(std::string_view(bytes).substr(pos, n));
      ASSERT_TRUE(reference_valid(text));
      ASSERT_LE(pieces.n_pending(), 3u);
      got += text;
      pos += n;
    }
    got += pieces.flush();
    ASSERT_EQ(got, expected);
  }
}

}  // namespace
}  // namespace forerun
