#include "retrieval/segment.h"

#include <gtest/gtest.h>

#include <array>

#include "retrieval/segment_search.h"
#include "retrieval/segment_test_support.h"

namespace forerun {
namespace {

constexpr uint64_t kTokenizer = 77;

std::vector<TokenId> ids(std::initializer_list<int> values) {
  std::vector<TokenId> tokens;
  for (const int value : values) tokens.push_back(TokenId{value});
  return tokens;
}

std::shared_ptr<const Segment> build(const std::vector<TokenId>& text, int n_vocab, int n_threads = 1) {
  return Segment::build(text, {kTokenizer, n_vocab}, n_threads);
}

// The order, queries that occur, and some that do not.
void expect_finds_everything(const Segment& segment, std::span<const TokenId> text,
                             std::mt19937& random) {
  const std::vector<int64_t> places = ordered_places(text);
  EXPECT_EQ(places_of(segment, {0, segment.n_entries()}), places);
  for (int round = 0; round < 40; ++round) {
    const int length = std::uniform_int_distribution<int>(1, round % 4 == 0 ? 32 : 6)(random);
    const auto place = std::uniform_int_distribution<int64_t>(0, std::ssize(text) - 1)(random);
    std::vector<TokenId> query = text_at(text, place, length);
    if (round % 3 == 0 && !query.empty()) query.back() = TokenId{to_int(query.back()) + 1};
    if (query.empty()) continue;
    EXPECT_EQ(places_of(segment, segment.find(query)), occurrences(text, places, query));
  }
}

TEST(Segment, KnowsItsText) {
  const auto text = ids({5, 6, 7, -1, -1, 5, -1});
  const auto segment = build(text, 10);
  EXPECT_EQ(segment->n_tokens(), 7);
  EXPECT_EQ(segment->n_documents(), 3);
  EXPECT_EQ(segment->n_entries(), 4);
  EXPECT_EQ(segment->identity(), (Segment::Identity{kTokenizer, 10}));
  for (size_t i = 0; i < text.size(); ++i) EXPECT_EQ(segment->token(static_cast<int64_t>(i)), text[i]);

  std::array<TokenId, 2> two{};
  EXPECT_EQ(segment->copy(1, two), 2);
  EXPECT_EQ(two[1], TokenId{7});
  EXPECT_EQ(segment->copy(2, two), 1);  // the document ends
  EXPECT_EQ(segment->copy(3, two), 0);
  EXPECT_EQ(segment->copy(5, two), 1);
}

TEST(Segment, OrdersByTextThenLatestFirst) {
  const auto segment = build(ids({1, 2, -1, 1, 2, 3, -1, 1, 2, -1}), 4);
  // "1 2" twice, the later first, before "1 2 3"; then what begins with 2, then 3.
  EXPECT_EQ(places_of(*segment, {0, segment->n_entries()}), (std::vector<int64_t>{7, 0, 3, 8, 1, 4, 5}));
  EXPECT_EQ(segment->find(ids({1, 2})).size(), 3);
  EXPECT_EQ(segment->find(ids({1, 2, 3})).size(), 1);
  EXPECT_EQ(segment->find(ids({2, 1})).size(), 0);  // never across documents
}

TEST(Segment, EmptyAndTiny) {
  const auto empty = build({}, 10);
  EXPECT_EQ(empty->n_tokens(), 0);
  EXPECT_EQ(empty->find(ids({1})).size(), 0);
  empty->verify();
  const auto separators = build(ids({-1, -1}), 10);
  EXPECT_EQ(separators->n_documents(), 2);
  EXPECT_EQ(separators->find(ids({1})).size(), 0);
  separators->verify();
  const auto one = build(ids({3, -1}), 10);
  EXPECT_EQ(places_of(*one, one->find(ids({3}))), std::vector<int64_t>{0});
  EXPECT_EQ(one->find(ids({3, 3})).size(), 0);
  one->verify();
}

TEST(Segment, UnknownTokensOccurNowhere) {
  const auto segment = build(ids({3, 4, -1}), 10);
  for (const int unknown : {-1, -2, 10, 65535, 65536, 1 << 30, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(segment->find(ids({unknown})).size(), 0) << unknown;
    EXPECT_EQ(segment->find(ids({3, unknown})).size(), 0) << unknown;
  }
}

// Vocabularies around the sizes at which keys and storage change.
TEST(Segment, EqualsBruteForce) {
  std::mt19937 random(1);
  for (const int n_vocab :
       {1, 2, 3, 4, 15, 255, 256, 49152, 65534, 65535, 65536, 65537, 262144, 2097152}) {
    for (int round = 0; round < 8; ++round) {
      RandomText spec;
      spec.n_vocab = n_vocab;
      spec.stride = std::max(1, (n_vocab - 1) / (1 + round % 4));
      spec.n_documents = 1 + round * 3;
      spec.max_length = 60;
      const auto text = random_text(spec, random);
      const auto segment = build(text, n_vocab, 1 + round % 3);
      EXPECT_EQ(segment->text().narrow(), n_vocab <= 65535);
      segment->verify();
      expect_finds_everything(*segment, text, random);
    }
  }
}

TEST(Segment, LongRepeatsAreOrderedToTheDepthThenByPlace) {
  // Equal for more than the depth: only the place decides.
  for (const int n_vocab : {3, 70000}) {
    std::vector<TokenId> text(200, TokenId{1});
    text.push_back(Segment::kSeparator);
    text.insert(text.end(), 100, TokenId{1});
    text.push_back(Segment::kSeparator);
    const auto segment = build(text, n_vocab);
    EXPECT_EQ(places_of(*segment, {0, segment->n_entries()}), ordered_places(text));
    EXPECT_EQ(segment->find(std::vector<TokenId>(32, TokenId{1})).size(), 169 + 69);
  }
}

// Large enough for buckets, threads and groups that do not fit a workspace.
TEST(Segment, LargeTextsEqualBruteForce) {
  std::mt19937 random(2);
  for (const int n_vocab : {2, 300, 100000}) {
    RandomText spec;
    spec.n_vocab = n_vocab;
    spec.stride = n_vocab > 2 ? n_vocab / 100 : 1;
    spec.n_documents = 300;
    spec.max_length = 1500;
    auto text = random_text(spec, random);
    text.insert(text.end(), 20000, TokenId{0});
    text.push_back(Segment::kSeparator);
    const std::vector<TokenId> copy(text.begin(), text.begin() + 20000);
    text.insert(text.end(), copy.begin(), copy.end());
    text.push_back(Segment::kSeparator);
    const auto segment = build(text, n_vocab, 3);
    segment->verify();  // a permutation in order, which is unique
    const auto alone = build(text, n_vocab, 1);
    EXPECT_TRUE(std::ranges::equal(segment->order(), alone->order()));
  }
}

TEST(Segment, ReportsProgressAndGivesUp) {
  std::mt19937 random(3);
  RandomText spec;
  spec.n_vocab = 1000;
  spec.n_documents = 200;
  spec.max_length = 2000;
  const auto text = random_text(spec, random);
  double last = 0.0;
  const auto growing = [&](double share) {
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1.0);
    last = share;
    return true;
  };
  EXPECT_NE(Segment::build(text, {kTokenizer, 1000}, 2, growing), nullptr);
  EXPECT_EQ(last, 1.0);
  for (const double limit : {0.0, 0.05, 0.3, 0.99}) {
    EXPECT_EQ(Segment::build(text, {kTokenizer, 1000}, 2, [&](double share) { return share < limit; }),
              nullptr);
  }
}

TEST(SegmentSearch, SeveralSegmentsAtOnceAsOneByOne) {
  std::mt19937 random(4);
  std::vector<std::shared_ptr<const Segment>> segments;
  std::vector<const Segment*> pointers;
  for (int i = 0; i < 9; ++i) {
    RandomText spec;
    spec.n_vocab = i % 2 == 0 ? 5 : 70000;
    spec.n_documents = i == 0 ? 0 : 1 << i;
    segments.push_back(build(random_text(spec, random), spec.n_vocab));
    pointers.push_back(segments.back().get());
  }
  SegmentSearch search;
  for (int round = 0; round < 500; ++round) {
    std::vector<TokenId> query(static_cast<size_t>(1 + round % 6));
    for (TokenId& token : query) token = TokenId{std::uniform_int_distribution<int>(0, 5)(random)};
    const auto ranges = search.find(pointers, query);
    ASSERT_EQ(ranges.size(), pointers.size());
    for (size_t i = 0; i < pointers.size(); ++i) {
      EXPECT_EQ(ranges[i], pointers[i]->find(query));
    }
  }
}

}  // namespace
}  // namespace forerun
