#include "sampling/stop.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.h"

namespace forerun {
namespace {

using Strings = std::vector<std::string>;

// What the matcher's header promises, computed afresh from the whole text.
struct Reference {
  Reference(const Strings& stops, const std::string& text) {
    for (size_t end = 1; end <= text.size() && !stopped; ++end) {
      size_t longest = 0;
      for (const std::string& s : stops) {
        if (std::string_view(text).substr(0, end).ends_with(s)) longest = std::max(longest, s.size());
      }
      if (longest > 0) {
        stopped = true;
        shown = text.substr(0, end - longest);
      }
    }
    if (stopped) return;
    size_t n_held = 0;
    for (const std::string& s : stops) {
      for (size_t n = 1; n < s.size(); ++n) {
        if (text.ends_with(s.substr(0, n))) n_held = std::max(n_held, n);
      }
    }
    shown = text.substr(0, text.size() - n_held);
  }

  bool stopped = false;
  std::string shown;
};

TEST(StopMatcher, CutsBeforeAStopStringAcrossPieces) {
  StopMatcher matcher({"</end>"});
  EXPECT_EQ(matcher.append("Hello <"), "Hello ");
  EXPECT_EQ(matcher.append("/en"), "");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.append("d> more"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.append("text"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, ReleasesWhatTurnsOutToBeText) {
  StopMatcher matcher({"\n\nUser:"});
  EXPECT_EQ(matcher.append("a\n\nUse"), "a");
  EXPECT_EQ(matcher.append("less"), "\n\nUseless");
  EXPECT_EQ(matcher.append("\n"), "");
  EXPECT_EQ(matcher.append(""), "");
  EXPECT_EQ(matcher.flush(), "\n");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, TheFirstToBeCompleteWinsHoweverTheTextIsCut) {
  for (const Strings& pieces :
       {Strings{"xabcd"}, Strings{"x", "a", "b", "c", "d"}, Strings{"xab", "cd"}}) {
    StopMatcher matcher({"abcd", "bc"});
    std::string shown;
    for (const std::string& piece : pieces) shown += matcher.append(piece);
    EXPECT_EQ(shown, "xa");
    EXPECT_TRUE(matcher.stopped());
  }
}

TEST(StopMatcher, OfThoseCompleteAtOneByteTheLongestWins) {
  StopMatcher matcher({"c", "abc", "bc"});
  EXPECT_EQ(matcher.append("xab"), "x");
  EXPECT_EQ(matcher.append("c"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, WithoutStringsPassesEverything) {
  StopMatcher matcher({}, {TokenId{2}});
  EXPECT_EQ(matcher.append("abc"), "abc");
  EXPECT_TRUE(matcher.is_stop(TokenId{2}));
  EXPECT_FALSE(matcher.is_stop(TokenId{3}));
}

TEST(StopMatcher, RefusesAnEmptyString) {
  try {
    StopMatcher matcher({"a", ""});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
  }
}

// Few letters make many overlaps. After every piece the text shown so far must be
// exactly the reference's: nothing too early, nothing held too long.
TEST(StopMatcher, EqualsTheReferenceOnRandomTexts) {
  std::mt19937 random(6);
  const auto random_string = [&](size_t n, size_t n_letters) {
    std::string s;
    while (s.size() < n) s += static_cast<char>('a' + random() % n_letters);
    return s;
  };
  int n_stopped = 0;
  for (int round = 0; round < 4'000; ++round) {
    const size_t n_letters = 2 + random() % 3;
    Strings stops(random() % 5);
    for (std::string& s : stops) s = random_string(1 + random() % 9, n_letters);
    StopMatcher matcher(stops);
    std::string text;
    std::string shown;
    while (text.size() < 60 && !matcher.stopped()) {
      const std::string piece = random_string(random() % 8, n_letters);
      text += piece;
      shown += matcher.append(piece);
      const Reference reference(stops, text);
      ASSERT_EQ(matcher.stopped(), reference.stopped) << text;
      ASSERT_EQ(shown, reference.shown) << text;
    }
    n_stopped += matcher.stopped() ? 1 : 0;
    shown += matcher.flush();
    ASSERT_EQ(shown, matcher.stopped() ? Reference(stops, text).shown : text);
  }
  EXPECT_GT(n_stopped, 1'000);
  EXPECT_LT(n_stopped, 3'900);
}

}  // namespace
}  // namespace forerun
