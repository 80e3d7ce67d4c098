// Do `neighbour` and `bayesian` find a planted set of 200 items among 270, as it must find the redundant
// blocks of a deep model?
#include <gtest/gtest.h>

#include <random>

#include "optimise/planted_subset.h"
#include "optimise/subset_search.h"

namespace forerun {
namespace {

constexpr int kItems = 270;
constexpr int kPlanted = 200;

// The share of the planted set's speedup that the found one has, without noise.
double reached(const PlantedSubset& planted, double noise, uint64_t seed, int n_scores,
               SubsetStrategy strategy = SubsetStrategy::kNeighbour) {
  SubsetSearchOptions options;
  options.strategy = strategy;
  options.seed = seed;
  SubsetSearch search({.n_items = kItems}, options);
  std::mt19937_64 random(seed);
  for (int i = 0; i < n_scores; ++i) {
    search.tell(planted.noisy(planted.speedup(search.propose()), noise, random));
  }
  return planted.speedup(search.best()->set) / planted.speedup(planted.planted());
}

TEST(NeighbourSearch, FindsThePlantedSet) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const PlantedSubset planted(kItems, kPlanted, 100 + seed);
    EXPECT_GE(reached(planted, 0, seed, 500), 0.99) << seed;
    EXPECT_GE(reached(planted, 0.01, seed, 1000), 0.95) << seed;
  }
}

TEST(NeighbourSearch, BearsNoise) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    sum += reached(PlantedSubset(kItems, kPlanted, 100 + seed), 0.02, seed, 1000);
  }
  EXPECT_GE(sum / 8, 0.92);
}

TEST(BayesianSearch, FindsThePlantedSet) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const PlantedSubset planted(kItems, kPlanted, 100 + seed);
    EXPECT_GE(reached(planted, 0, seed, 350, SubsetStrategy::kBayesian), 0.99) << seed;
    EXPECT_GE(reached(planted, 0.01, seed, 1000, SubsetStrategy::kBayesian), 0.95) << seed;
  }
}

TEST(BayesianSearch, BearsNoise) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const PlantedSubset planted(kItems, kPlanted, 100 + seed);
    sum += reached(planted, 0.02, seed, 1000, SubsetStrategy::kBayesian);
  }
  EXPECT_GE(sum / 4, 0.92);
}

// Where every item is needed the best is to skip none: as far as the noise of 2 % shows.
TEST(SubsetSearchOnNeededItems, SkipsNothingWhereNothingPays) {
  for (const SubsetStrategy strategy : {SubsetStrategy::kNeighbour, SubsetStrategy::kBayesian}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const PlantedSubset needed(60, 0, seed);
      SubsetSearchOptions options;
      options.strategy = strategy;
      options.seed = seed;
      SubsetSearch search({.n_items = 60}, options);
      std::mt19937_64 random(seed);
      for (int i = 0; i < 300; ++i) {
        search.tell(needed.noisy(needed.speedup(search.propose()), 0.02, random));
      }
      const double least = strategy == SubsetStrategy::kNeighbour ? 0.95 : 0.9;
      EXPECT_GE(needed.speedup(search.best()->set), least) << to_string(strategy) << seed;
    }
  }
}

// With a fixed size: 60 of 270, and the score is agreement.
TEST(NeighbourSearch, FindsItemsToSwap) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const PlantedSubset planted(kItems, kPlanted, 100 + seed);
    SubsetSearchOptions options;
    options.seed = seed;
    options.neighbour.may_resize = false;
    SubsetSearch search({.n_items = kItems, .n_skipped = 60}, options);
    const double at_first = planted.agreement(search.propose());
    for (int i = 0; i < 1000; ++i) search.tell(planted.agreement(search.propose()));
    EXPECT_LT(at_first, 0.2);
    EXPECT_GE(planted.agreement(search.best()->set), 0.9) << seed;
  }
}

// Which of 20 items to skip: the mean of several searches of 60 scores each.
TEST(BayesianSearch, BeatsRandomSets) {
  const auto reached = [](SubsetSearchOptions options, uint64_t seed) {
    options.seed = seed;
    SubsetSearch search({.n_items = 20, .n_skipped = 10}, options);
    const Subset hidden = PlantedSubset(20, 10, 100 + seed).planted();
    for (int i = 0; i < 60; ++i) search.tell(likeness(search.propose(), hidden));
    return search.best()->score;
  };
  double by_chance = 0;
  double raw = 0;
  double rounded = 0;
  double self_sd = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SubsetSearchOptions options = small(SubsetStrategy::kSwift);
    options.bayesian.every = 0;
    by_chance += reached(options, seed) / 5;
    options.bayesian.every = 2;
    raw += reached(options, seed) / 5;
    options.bayesian.registered = RegisteredPoint::kRounded;
    rounded += reached(options, seed) / 5;
    self_sd += reached(small(SubsetStrategy::kSelfSd), seed) / 5;
  }
  EXPECT_GT(raw, by_chance + 0.05);
  EXPECT_GT(rounded, by_chance + 0.05);
  EXPECT_GT(self_sd, by_chance + 0.05);
}

}  // namespace
}  // namespace forerun
