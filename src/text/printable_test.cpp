#include "text/printable.h"

#include <gtest/gtest.h>

#include "text/utf8.h"

namespace forerun {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const std::string_view text :
       {"", "plain", "two\nlines\tand a tab", "\xc3\xa4\xe2\x82\xac\xf0\x9f\xa6\x8a"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, ShowsWhatATerminalWouldActUpon) {
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("a\rb\x07\x7f"), "a\\x0db\\x07\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "evil"),
            "\\u202e"
            "evil");
}

TEST(Printable, ShowsBytesThatAreNoCharacters) {
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xff\xc3\xa4"), "\\xff\xc3\xa4");
}

TEST(Printable, IsAlwaysValidAndHarmless) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<char>(i * 2654435761u >> 13));
  const std::string shown = printable(bytes);
  EXPECT_TRUE(is_valid_utf8(shown));
  EXPECT_EQ(printable(shown), shown);
}

}  // namespace
}  // namespace forerun
