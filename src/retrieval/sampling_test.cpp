#include "retrieval/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace forerun {
namespace {

// Segments of so many tokens, whatever they are.
struct Segments {
  explicit Segments(std::initializer_list<int> sizes) {
    for (const int size : sizes) {
      std::vector<TokenId> text(static_cast<size_t>(size - 1), TokenId{0});
      text.push_back(Segment::kSeparator);
      owned.push_back(Segment::build(std::move(text), {1, 2}, 1));
      pointers.push_back(owned.back().get());
    }
  }
  SegmentList owned;
  std::vector<const Segment*> pointers;
};

std::vector<Sample> choose(RetrievalVariant variant, int max_samples, const Segments& segments,
                           const std::vector<Segment::Range>& ranges) {
  std::vector<Sample> samples;
  choose_samples(variant, max_samples, segments.pointers, ranges, samples);
  return samples;
}

std::vector<int> per_segment(const std::vector<Sample>& samples, size_t n_segments) {
  std::vector<int> counts(n_segments, 0);
  for (const Sample& sample : samples) ++counts[static_cast<size_t>(sample.segment)];
  return counts;
}

TEST(Sampling, Names) {
  EXPECT_EQ(retrieval_variant("paper"), RetrievalVariant::kPaper);
  EXPECT_EQ(retrieval_variant("code"), RetrievalVariant::kCode);
  EXPECT_EQ(retrieval_variant("pooled"), RetrievalVariant::kPooled);
  EXPECT_FALSE(retrieval_variant("").has_value());
}

TEST(Sampling, AllVariantsTakeDistinctSamplesInOrder) {
  std::mt19937 random(1);
  const Segments segments({50, 1000, 300, 2});
  for (int round = 0; round < 300; ++round) {
    std::vector<Segment::Range> ranges;
    int64_t total = 0;
    for (const Segment* segment : segments.pointers) {
      const auto a = std::uniform_int_distribution<int64_t>(0, segment->n_entries())(random);
      const auto b = std::uniform_int_distribution<int64_t>(0, segment->n_entries())(random);
      ranges.push_back({std::min(a, b), round % 4 == 0 ? std::min(a, b) : std::max(a, b)});
      total += ranges.back().size();
    }
    const int max_samples = std::uniform_int_distribution<int>(1, 120)(random);
    for (const auto variant :
         {RetrievalVariant::kPaper, RetrievalVariant::kCode, RetrievalVariant::kPooled}) {
      const auto samples = choose(variant, max_samples, segments, ranges);
      EXPECT_EQ(samples.empty(), total == 0);
      for (size_t i = 0; i < samples.size(); ++i) {
        const Segment::Range& range = ranges[static_cast<size_t>(samples[i].segment)];
        EXPECT_GE(samples[i].rank, range.begin);
        EXPECT_LT(samples[i].rank, range.end);
        if (i == 0) continue;
        EXPECT_GE(samples[i].segment, samples[i - 1].segment);
        if (samples[i].segment != samples[i - 1].segment) continue;
        EXPECT_GT(samples[i].rank, samples[i - 1].rank);
      }
    }
  }
}

TEST(Sampling, PooledTakesTheMiddlesOfEqualParts) {
  const Segments segments({1000, 500, 3000});
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Segment::Range> ranges;
    std::vector<Sample> places;  // all, one after the other
    for (size_t i = 0; i < 3; ++i) {
      const auto size = std::uniform_int_distribution<int64_t>(0, round % 2 == 0 ? 400 : 20)(random);
      ranges.push_back({7, 7 + size});
      for (int64_t rank = 7; rank < 7 + size; ++rank) places.push_back({static_cast<int32_t>(i), rank});
    }
    const auto samples = choose(RetrievalVariant::kPooled, 100, segments, ranges);
    const size_t n = std::min<size_t>(100, places.size());
    ASSERT_EQ(samples.size(), n);
    for (size_t i = 0; i < n; ++i) {
      const double middle =
          (static_cast<double>(i) + 0.5) * static_cast<double>(places.size()) / static_cast<double>(n);
      EXPECT_EQ(samples[i], places[static_cast<size_t>(std::floor(middle + 1e-9))]);
    }
  }
}

TEST(Sampling, ThePapersStepIsAWholeNumber) {
  const Segments one({1000});
  // 199 / 100 is 1: all of them.
  EXPECT_EQ(choose(RetrievalVariant::kPaper, 100, one, {{0, 199}}).size(), 199u);
  EXPECT_EQ(choose(RetrievalVariant::kPaper, 100, one, {{0, 200}}).size(), 100u);
  const Segments two({750, 250});
  EXPECT_EQ(per_segment(choose(RetrievalVariant::kPaper, 100, two, {{0, 600}, {0, 200}}), 2),
            (std::vector<int>{75, 25}));
}

TEST(Sampling, TheCodesShares) {
  const Segments one({5000});
  EXPECT_EQ(choose(RetrievalVariant::kCode, 100, one, {{0, 100}}).size(), 100u);
  EXPECT_EQ(choose(RetrievalVariant::kCode, 100, one, {{0, 4000}}).size(), 101u);
  // Eight equal segments get a fifth each, not an eighth.
  const Segments eight({1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
  const std::vector<Segment::Range> ranges(8, {0, 900});
  EXPECT_EQ(per_segment(choose(RetrievalVariant::kCode, 100, eight, ranges), 8),
            std::vector<int>(8, 21));
  EXPECT_EQ(choose(RetrievalVariant::kPaper, 100, eight, ranges).size(), 8u * 14);
  EXPECT_EQ(choose(RetrievalVariant::kPooled, 100, eight, ranges).size(), 100u);
  // A tiny segment shows one place.
  const Segments tiny({5000, 5});
  EXPECT_EQ(per_segment(choose(RetrievalVariant::kCode, 100, tiny, {{0, 10}, {0, 4}}), 2),
            (std::vector<int>{10, 1}));
  // A tiny first segment does not make the others' shares grow without bound.
  const Segments tiny_first({5, 5000});
  EXPECT_EQ(per_segment(choose(RetrievalVariant::kCode, 100, tiny_first, {{0, 4}, {0, 4000}}), 2)[1],
            101);
}

}  // namespace
}  // namespace forerun
