#include "draft/text/rest.h"

#include <map>

#include "draft/draft_test_support.h"

namespace forerun {
namespace {

constexpr int kRestVocab = 100;

std::shared_ptr<const Segment> segment(const std::vector<Tokens>& documents) {
  Tokens text;
  for (const Tokens& document : documents) {
    text.insert(text.end(), document.begin(), document.end());
    text.push_back(Segment::kSeparator);
  }
  return Segment::build(std::move(text), {.tokenizer = 1, .n_vocab = kRestVocab}, 1);
}

SegmentSource source(SegmentList list) {
  return [list = std::make_shared<const SegmentList>(std::move(list))] { return list; };
}

TEST(Rest, DraftsTheMostFrequentContinuations) {
  // Behind "1 2": 3 4, 3 5, 6.
  RestDrafter method(RestOptions{},
                     source({segment({ids({1, 2, 3, 4}), ids({1, 2, 3, 5}), ids({1, 2, 6})})}));
  const DraftTree tree = draft(*method.begin(ids({9, 1, 2})));
  const auto drafted = paths(tree);
  ASSERT_EQ(drafted.size(), 4u);
  EXPECT_FLOAT_EQ(drafted.at(ids({3})), 2.0f / 4);
  EXPECT_FLOAT_EQ(drafted.at(ids({3, 4})), 1.0f / 4);
  EXPECT_FLOAT_EQ(drafted.at(ids({6})), 1.0f / 4);
  EXPECT_EQ(tree[0].token, TokenId{3});
  EXPECT_EQ(tree[0].match_length, 2);
  EXPECT_EQ(tree[0].source, DraftSource::kDatastore);
}

TEST(Rest, UsesTheLongestMatchOfAnySegment) {
  RestDrafter method(RestOptions{},
                     source({segment({ids({2, 3, 7}), ids({2, 3, 7})}), segment({ids({1, 2, 3, 8})})}));
  EXPECT_EQ(chain(draft(*method.begin(ids({1, 2, 3})))), ids({8}));
  EXPECT_EQ(paths(draft(*method.begin(ids({5, 2, 3})))).size(), 2u);
}

TEST(Rest, ShortensAMatchThatNothingFollows) {
  RestDrafter method(RestOptions{}, source({segment({ids({1, 2, 3}), ids({4, 2, 3, 5})})}));
  EXPECT_EQ(chain(draft(*method.begin(ids({1, 2, 3})))), ids({5}));
}

TEST(Rest, DraftsNothingWithoutADatastore) {
  for (const SegmentSource& none :
       {SegmentSource{}, SegmentSource{[] { return nullptr; }}, source({})}) {
    RestDrafter method(RestOptions{}, none);
    EXPECT_TRUE(draft(*method.begin(ids({1, 2, 3}))).empty());
    EXPECT_TRUE(draft(*method.begin({})).empty());
  }
  RestDrafter method(RestOptions{}, source({segment({ids({1, 2, 3, 4})})}));
  const DraftLimits no_stores{.max_nodes = 64, .max_depth = 64, .from_stores = false};
  EXPECT_TRUE(draft(*method.begin(ids({1, 2, 3})), no_stores).empty());
  EXPECT_FALSE(draft(*method.begin(ids({1, 2, 3}))).empty());
}

// Shared among segments in proportion, so that their number does not matter.
TEST(Rest, LooksAtALimitedNumberOfOccurrences) {
  RestOptions options;
  options.samples = 10;
  options.branch = 1;
  std::vector<Tokens> many(40, ids({1, 2, 3}));
  std::vector<Tokens> few(10, ids({1, 2, 4}));
  RestDrafter method(options, source({segment(many), segment(few)}));
  const auto drafted = paths(draft(*method.begin(ids({1, 2}))));
  EXPECT_FLOAT_EQ(drafted.at(ids({3})), 8.0f / 11);
  EXPECT_FLOAT_EQ(drafted.at(ids({4})), 2.0f / 11);
}

// All continuations of the longest match, by reading the documents.
struct Naive {
  int match_length = 0;
  int n_rows = 0;
  std::map<Tokens, int> counts;

  Naive(const std::vector<Tokens>& documents, const Tokens& text, const RestOptions& options) {
    for (int n = std::min<int>(options.max_match, static_cast<int>(text.size())); n >= options.min_match;
         --n) {
      const Tokens query(text.end() - n, text.end());
      for (const Tokens& document : documents) {
        for (size_t i = 0; i + query.size() <= document.size(); ++i) {
          const auto begin = document.begin() + static_cast<ptrdiff_t>(i);
          if (!std::equal(query.begin(), query.end(), begin)) continue;
          ++n_rows;
          const size_t left = document.size() - i - query.size();
          for (size_t d = 1; d <= std::min(left, static_cast<size_t>(options.branch)); ++d) {
            ++counts[{begin + n, begin + n + static_cast<ptrdiff_t>(d)}];
          }
        }
      }
      match_length = n;
      if (!counts.empty()) return;
      n_rows = 0;
    }
  }
};

TEST(Rest, CountsEveryContinuation) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    RestOptions options;
    options.max_match = random_int(random, 2, 6);
    options.min_match = random_int(random, 1, options.max_match);
    options.branch = round % 10 == 0 ? 40 : random_int(random, 1, 6);  // 40: beyond the index's order
    options.tokens = random_int(random, 1, 20);
    std::vector<Tokens> documents;
    SegmentList segments;
    for (int i = random_int(random, 1, 3); i > 0; --i) {
      std::vector<Tokens> own;
      for (int d = random_int(random, 1, 4); d > 0; --d)
        own.push_back(random_tokens(random, random_int(random, 0, 60), 3));
      segments.push_back(segment(own));
      documents.insert(documents.end(), own.begin(), own.end());
    }
    RestDrafter method(options, source(segments));
    const Tokens text = random_tokens(random, random_int(random, 0, 10), 3);
    const DraftLimits limits = {.max_nodes = random_int(random, 1, 20),
                                .max_depth = random_int(random, 1, 8)};
    const DraftTree tree = draft(*method.begin(text), limits);
    expect_sound(tree, limits);
    const Naive naive(documents, text, options);
    std::vector<int> expected;
    for (const auto& [path, count] : naive.counts) {
      if (static_cast<int>(path.size()) <= limits.max_depth) expected.push_back(count);
    }
    std::sort(expected.rbegin(), expected.rend());
    expected.resize(
        std::min(expected.size(), static_cast<size_t>(std::min(options.tokens, limits.max_nodes))));
    std::vector<int> found;
    for (const auto& [path, score] : paths(tree)) {
      ASSERT_TRUE(naive.counts.contains(path));
      found.push_back(naive.counts.at(path));
      ASSERT_FLOAT_EQ(score, static_cast<float>(found.back()) / (static_cast<float>(naive.n_rows) + 1));
    }
    std::sort(found.rbegin(), found.rend());
    ASSERT_EQ(found, expected);
    if (!tree.empty()) {
      ASSERT_EQ(tree[0].match_length, naive.match_length);
    }
  }
}

}  // namespace
}  // namespace forerun
