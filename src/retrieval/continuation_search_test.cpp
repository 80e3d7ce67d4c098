#include "retrieval/continuation_search.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/test_tokens.h"
#include "retrieval/segment_test_support.h"

namespace forerun {
namespace {

struct Store {
  void add(Tokens text, int n_vocab) {
    segments.push_back(Segment::build(text, {1, n_vocab}, 1));
    pointers.push_back(segments.back().get());
    places.push_back(ordered_places(text));
    texts.push_back(std::move(text));
  }
  SegmentList segments;
  std::vector<const Segment*> pointers;
  std::vector<Tokens> texts;
  std::vector<std::vector<int64_t>> places;
};

// The weights of all continuations, from the texts and the rules.
std::map<Tokens, double> weights_by_hand(const Store& store, const ContinuationOptions& options,
                                         const Tokens& query, int max_length) {
  std::map<Tokens, double> weights;
  const bool paper = options.variant == RetrievalVariant::kPaper;
  const bool pooled = options.variant == RetrievalVariant::kPooled;
  const int longest = std::min(options.max_prefix, static_cast<int>(query.size()));
  const int shortest = paper && longest > 1 ? 2 : 1;
  int n_samples = 0;
  double left = 1.0;
  for (int length = longest; length >= shortest; --length) {
    const int n_seen = paper ? std::max(1, static_cast<int>(weights.size())) : n_samples;
    if (n_seen >= options.min_samples) break;
    const Tokens prefix(query.end() - length, query.end());
    std::vector<std::vector<int64_t>> found;
    std::vector<Segment::Range> ranges;
    for (size_t i = 0; i < store.texts.size(); ++i) {
      found.push_back(occurrences(store.texts[i], store.places[i], prefix));
      ranges.push_back({0, std::ssize(found.back())});
    }
    std::vector<Sample> samples;
    choose_samples(options.variant, options.max_samples, store.pointers, ranges, samples);
    if (samples.empty()) continue;
    n_samples += static_cast<int>(samples.size());
    std::vector<Tokens> continuations;
    std::set<Tokens> next;
    for (const Sample& sample : samples) {
      const auto segment = static_cast<size_t>(sample.segment);
      const int64_t place = found[segment][static_cast<size_t>(sample.rank)];
      continuations.push_back(text_at(store.texts[segment], place + length, max_length));
      next.insert(text_at(store.texts[segment], place + length, 1));
    }
    double weight = 1.0;
    if (pooled) {
      const double n = static_cast<double>(samples.size());
      const double share = left * n / (n + static_cast<double>(next.size()) + 8.0);
      weight = share / n;
      left -= share;
    }
    for (const Tokens& continuation : continuations) {
      for (size_t size = 0; size <= continuation.size(); ++size) {
        weights[Tokens(continuation.begin(), continuation.begin() + static_cast<ptrdiff_t>(size))] +=
            weight;
      }
    }
  }
  return weights;
}

void expect_equal_below(const ContinuationTrie& trie, uint64_t handle, const Tokens& path,
                        std::map<Tokens, double>& weights) {
  std::vector<Candidate> children;
  trie.children(handle, children);
  for (const Candidate& child : children) {
    Tokens longer = path;
    longer.push_back(child.token);
    ASSERT_TRUE(weights.contains(longer));
    EXPECT_NEAR(child.share, weights.at(longer) / weights.at(path), 1e-5);
    expect_equal_below(trie, child.handle, longer, weights);
  }
}

TEST(ContinuationSearch, EqualsBruteForce) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    Store store;
    const int n_vocab = round % 3 == 0 ? 70000 : 5;
    for (int i = pick(0, 4); i > 0; --i) {
      RandomText spec;
      spec.n_vocab = n_vocab;
      spec.stride = std::max(1, n_vocab / 4);
      spec.n_documents = pick(1, 20);
      store.add(random_text(spec, random), n_vocab);
    }
    for (const auto variant :
         {RetrievalVariant::kPaper, RetrievalVariant::kCode, RetrievalVariant::kPooled}) {
      ContinuationOptions options{variant, pick(1, 6), pick(1, 40), pick(1, 30)};
      ContinuationSearch search(options);
      for (int i = 0; i < 10; ++i) {
        Tokens query;
        for (int n = pick(0, 8); n > 0; --n)
          query.push_back(TokenId{pick(0, 4) * std::max(1, n_vocab / 4)});
        const int max_length = pick(1, 6);
        const ContinuationTrie& trie = search.search(store.pointers, query, max_length);
        auto weights = weights_by_hand(store, options, query, max_length);
        const int n_expected = std::max(0, static_cast<int>(weights.size()) - 1);
        ASSERT_EQ(trie.n_nodes(), n_expected);
        EXPECT_NEAR(trie.weight(), weights[{}], 1e-4);
        expect_equal_below(trie, ContinuationTrie::kRootHandle, {}, weights);
      }
    }
  }
}

std::map<TokenId, float> first_tokens(const ContinuationTrie& trie) {
  std::vector<Candidate> children;
  trie.children(ContinuationTrie::kRootHandle, children);
  std::map<TokenId, float> shares;
  for (const Candidate& child : children) shares[child.token] = child.share;
  return shares;
}

TEST(ContinuationSearch, BacksOffToShorterPrefixes) {
  Store store;
  store.add(ids({1, 2, 3, 4, 5, -1, 9, 4, 6, -1}), 10);
  for (const auto variant :
       {RetrievalVariant::kPaper, RetrievalVariant::kCode, RetrievalVariant::kPooled}) {
    ContinuationSearch search({variant, 4, 100, 50});
    const auto shares = first_tokens(search.search(store.pointers, ids({1, 2, 3, 4}), 6));
    // What followed the whole prefix is the better guess; the paper never searches one token.
    EXPECT_GT(shares.at(TokenId{5}), 0.5f);
    EXPECT_EQ(shares.contains(TokenId{6}), variant != RetrievalVariant::kPaper);
  }
  ContinuationSearch satisfied({RetrievalVariant::kPooled, 4, 100, 1});
  EXPECT_EQ(first_tokens(satisfied.search(store.pointers, ids({1, 2, 3, 4}), 6)).size(), 1u);
}

TEST(ContinuationSearch, NothingBehindTheLastTokenOfADocument) {
  Store store;
  store.add(ids({1, 2, -1, 3, -1}), 10);
  ContinuationSearch search({});
  EXPECT_EQ(search.search(store.pointers, ids({1, 2}), 6).n_nodes(), 0);
  EXPECT_EQ(search.search(store.pointers, ids({3}), 6).n_nodes(), 0);
}

TEST(ContinuationSearch, NothingToSearchFor) {
  Store store;
  store.add(ids({1, 2, -1}), 10);
  ContinuationSearch search({});
  EXPECT_EQ(search.search({}, ids({1}), 6).n_nodes(), 0);
  EXPECT_EQ(search.search(store.pointers, {}, 6).n_nodes(), 0);
  EXPECT_EQ(search.search(store.pointers, ids({77777}), 6).n_nodes(), 0);
  EXPECT_EQ(search.search(store.pointers, ids({1}), 6).n_nodes(), 1);
}

}  // namespace
}  // namespace forerun
