#include "draft/text/pld.h"

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

PldOptions with_match(const char* match) {
  PldOptions options;
  options.match = match;
  return options;
}

TEST(Pld, DraftsWhatFollowedTheLongestNgram) {
  // "1 2 3" is followed by 7; the nearer "2 3" and "3" by others.
  PldDrafter method{PldOptions{}};
  const auto drafter = method.begin(ids({1, 2, 3, 7, 9, 2, 3, 8, 3, 6, 1, 2, 3}));
  EXPECT_EQ(chain(draft(*drafter)), ids({7, 9, 2, 3, 8, 3, 6, 1, 2, 3}));
  EXPECT_EQ(draft(*drafter)[0].match_length, 3);
  EXPECT_EQ(draft(*drafter)[0].source, DraftSource::kInput);
}

TEST(Pld, TakesTheOccurrenceAskedFor) {
  const Tokens text = ids({5, 6, 1, 5, 6, 2, 5, 6});
  EXPECT_EQ(chain(draft(*PldDrafter(with_match("first")).begin(text))), ids({1, 5, 6, 2, 5, 6}));
  EXPECT_EQ(chain(draft(*PldDrafter(with_match("last")).begin(text))), ids({2, 5, 6}));
}

TEST(Pld, DraftsNothingWithoutAMatch) {
  PldDrafter method{PldOptions{}};
  EXPECT_TRUE(draft(*method.begin({})).empty());
  EXPECT_TRUE(draft(*method.begin(ids({1}))).empty());
  EXPECT_TRUE(draft(*method.begin(ids({1, 2, 3}))).empty());
  PldOptions two;
  two.min_ngram = 2;
  EXPECT_TRUE(draft(*PldDrafter(two).begin(ids({4, 3, 7, 2, 3}))).empty());
}

// The definition: scan for the longest n-gram, take the first or last place behind it.
Tokens naive(const Tokens& text, const PldOptions& options, int max_tokens) {
  const int size = static_cast<int>(text.size());
  for (int n = std::min(options.ngram, size - 1); n >= options.min_ngram; --n) {
    int next = -1;
    for (int place = n; place < size; ++place) {
      if (!std::equal(text.end() - n, text.end(), text.begin() + place - n)) continue;
      if (next < 0 || options.match == "last") next = place;
    }
    if (next < 0) continue;
    const int end = std::min({next + options.tokens, next + max_tokens, size});
    return {text.begin() + next, text.begin() + end};
  }
  return {};
}

TEST(Pld, DraftsWhatAScanFinds) {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    PldOptions options = with_match(round % 2 == 0 ? "first" : "last");
    options.ngram = random_int(random, 1, 5);
    options.min_ngram = random_int(random, 1, options.ngram);
    options.tokens = random_int(random, 1, 12);
    PldDrafter method(options);
    Tokens text = random_tokens(random, random_int(random, 0, 20), 5);
    const auto drafter = method.begin(text);
    for (int step = 0; step < 30; ++step) {
      const DraftLimits limits = {.max_nodes = random_int(random, 0, 12),
                                  .max_depth = random_int(random, 0, 12)};
      const DraftTree tree = draft(*drafter, limits);
      expect_sound(tree, limits);
      ASSERT_EQ(chain(tree), naive(text, options, std::min(limits.max_nodes, limits.max_depth)));
      const Tokens more = random_tokens(random, random_int(random, 1, 4), 5);
      drafter->append(more);
      text.insert(text.end(), more.begin(), more.end());
    }
  }
}

}  // namespace
}  // namespace forerun
