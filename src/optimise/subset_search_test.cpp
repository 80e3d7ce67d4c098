#include "optimise/subset_search.h"

#include <forerun/error.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "optimise/planted_subset.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr SubsetStrategy kStrategies[] = {SubsetStrategy::kSwift, SubsetStrategy::kNeighbour,
                                          SubsetStrategy::kBayesian, SubsetStrategy::kSelfSd};
// Those whose sets may be of one size only.
bool has_size(SubsetStrategy strategy) {
  return strategy == SubsetStrategy::kSwift || strategy == SubsetStrategy::kNeighbour;
}

Subset hidden_set(int n_items, int n_skipped, uint64_t seed) {
  return PlantedSubset(n_items, n_skipped, seed).planted();
}

TEST(SubsetSearch, FixedSizesAndProtectedItemsAreKept) {
  for (const SubsetStrategy strategy : kStrategies) {
    SubsetSearchOptions options = small(strategy);
    options.bayesian.every = 5;
    options.neighbour.may_resize = false;
    SubsetProblem problem{.n_items = 24, .is_protected = Subset(24), .n_skipped = 9};
    for (const size_t item : {0, 1, 12, 23}) problem.is_protected[item] = true;
    SubsetSearch search(problem, options);
    const Subset hidden = hidden_set(24, 10, 1);
    std::set<Subset> seen;
    for (int i = 0; i < 60; ++i) {
      const Subset set = search.propose();
      ASSERT_EQ(set.size(), 24);
      for (size_t item = 0; item < set.size(); ++item) {
        ASSERT_FALSE(set[item] && problem.is_protected[item]) << to_string(strategy) << item;
      }
      ASSERT_TRUE(!has_size(strategy) || n_skipped(set) == 9);
      EXPECT_EQ(search.propose(), set);  // the same until it is scored
      seen.insert(set);
      search.tell(likeness(set, hidden));
    }
    EXPECT_GT(seen.size(), 15) << to_string(strategy);
  }
}

TEST(SubsetSearch, ResizingKeepsProtectedItems) {
  for (const SubsetStrategy strategy : {SubsetStrategy::kNeighbour, SubsetStrategy::kBayesian}) {
    SubsetProblem problem{.n_items = 30, .is_protected = Subset(30)};
    problem.is_protected[0] = problem.is_protected[29] = true;
    SubsetSearch search(problem, small(strategy));
    for (int i = 0; i < 200; ++i) {
      const Subset set = search.propose();
      ASSERT_FALSE(set[0] || set[29]);
      search.tell(1 + n_skipped(set) / 30.0);
    }
    EXPECT_EQ(n_skipped(search.best()->set), 28) << to_string(strategy);
  }
}

TEST(SubsetSearch, GivenSetsComeFirst) {
  const Subset first = hidden_set(12, 4, 1);
  const Subset second = hidden_set(12, 5, 2);
  for (const SubsetStrategy strategy : kStrategies) {
    SubsetSearch search({.n_items = 12, .n_skipped = 4, .first_sets = {first, second}}, small(strategy));
    EXPECT_EQ(search.propose(), first);
    search.tell(0.5);
    EXPECT_EQ(search.propose(), second);
    search.tell(0.25);
    EXPECT_EQ(search.best()->set, first);
    EXPECT_EQ(search.best()->score, 0.5);
    for (int i = 0; i < 5; ++i) {
      search.propose();
      search.tell(0.1);
    }
    EXPECT_EQ(search.n_scores(), 7);
  }
}

TEST(SubsetSearch, StopRules) {
  SubsetSearchOptions options = SubsetSearchOptions::swift();
  EXPECT_EQ(options.good_score, 0.95);
  options.max_scores = 20;
  options.max_without_progress = 5;
  const auto make = [&] { return SubsetSearch({.n_items = 10, .n_skipped = 4}, options); };
  const auto score = [](SubsetSearch& search, double value) {
    search.propose();
    search.tell(value);
  };
  SubsetSearch good = make();
  EXPECT_FALSE(good.best());
  score(good, 0.95);
  EXPECT_FALSE(good.ended());
  score(good, 0.96);
  EXPECT_EQ(good.ended(), SearchEnd::kGoodScore);

  SubsetSearch stuck = make();
  score(stuck, 0.5);
  for (int i = 0; i < 5; ++i) score(stuck, 0.5);
  EXPECT_FALSE(stuck.ended());
  score(stuck, 0.4);
  EXPECT_EQ(stuck.ended(), SearchEnd::kNoProgress);
  EXPECT_EQ(stuck.n_without_progress(), 6);

  SubsetSearch long_one = make();
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(long_one.ended());
    score(long_one, 0.01 * i);
  }
  EXPECT_EQ(long_one.ended(), SearchEnd::kMaxScores);
}

TEST(SubsetSearch, ContinuesFromWhatWasSaved) {
  const Subset hidden = hidden_set(18, 7, 5);
  for (const SubsetStrategy strategy : kStrategies) {
    SubsetSearchOptions options = small(strategy);
    options.bayesian.every = 4;
    SubsetProblem problem{.n_items = 18, .is_protected = Subset(18), .n_skipped = 6};
    problem.is_protected[0] = true;
    std::mt19937_64 random(1);
    std::normal_distribution<double> noise(0, 0.01);
    SubsetSearch search(problem, options);
    for (int i = 0; i < 37; ++i) search.tell(likeness(search.propose(), hidden) + noise(random));
    search.propose();  // a proposal under way is made again
    const std::string text = search.to_json().dump();
    SubsetSearch restored = SubsetSearch::from_json(Json::parse(text), problem, options);
    EXPECT_EQ(restored.best(), search.best());
    EXPECT_EQ(restored.to_json().dump(), text);
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(restored.propose(), search.propose()) << to_string(strategy) << i;
      const double score = likeness(search.propose(), hidden) + noise(random);
      search.tell(score);
      restored.tell(score);
    }
    EXPECT_EQ(restored.to_json().dump(), search.to_json().dump());
  }
}

TEST(SubsetSearch, RejectsWhatWasNotSavedForIt) {
  for (const SubsetStrategy strategy : kStrategies) {
    const SubsetProblem problem{.n_items = 12, .n_skipped = 4};
    const SubsetSearchOptions options = small(strategy);
    SubsetSearch search(problem, options);
    for (int i = 0; i < 6; ++i) search.tell(likeness(search.propose(), hidden_set(12, 4, 1)));
    const Json saved = search.to_json();
    EXPECT_NO_THROW(SubsetSearch::from_json(saved, problem, options));
    const auto rejects = [&](const Json& json, ErrorCode code = ErrorCode::kInvalidFile) {
      try {
        SubsetSearch::from_json(json, problem, options);
      } catch (const Error& error) {
        return error.code() == code && std::string(error.what()).find('\n') == std::string::npos;
      }
      return false;
    };
    EXPECT_TRUE(rejects(Json()));
    EXPECT_TRUE(rejects(Json::array()));
    for (const auto& [key, value] : saved.items()) {
      Json without = saved;
      without.erase(key);
      EXPECT_TRUE(rejects(without)) << key;
      Json changed = saved;
      changed[key] = Json{{"no", "sense"}};
      EXPECT_TRUE(rejects(changed)) << key;
    }
    for (const auto& [key, value] : saved["learnt"].items()) {
      Json changed = saved;
      changed["learnt"][key] = "no sense";
      EXPECT_TRUE(rejects(changed)) << key;
    }
    Json other = saved;
    other["version"] = 2;
    EXPECT_TRUE(rejects(other, ErrorCode::kUnsupported)) << "a newer one";
    other["version"] = 0;
    EXPECT_TRUE(rejects(other));
    EXPECT_THROW(SubsetSearch::from_json(saved, {.n_items = 13, .n_skipped = 4}, options), Error);
    SubsetProblem guarded = problem;
    guarded.is_protected = Subset(12, false);
    guarded.is_protected[3] = true;
    EXPECT_THROW(SubsetSearch::from_json(saved, guarded, options), Error);
  }
}

TEST(SubsetSearch, RejectsProblemsWithoutSense) {
  const SubsetSearchOptions swift = SubsetSearchOptions::swift();
  EXPECT_THROW(SubsetSearch({.n_items = 0}, swift), Error);
  EXPECT_THROW(SubsetSearch({.n_items = 3, .is_protected = Subset(3, true)}, swift), Error);
  EXPECT_THROW(SubsetSearch({.n_items = 3, .is_protected = Subset(2)}, swift), Error);
  EXPECT_THROW(SubsetSearch({.n_items = 3, .n_skipped = 4}, swift), Error);
  EXPECT_THROW(SubsetSearch({.n_items = 3, .n_skipped = 1, .first_sets = {Subset(4)}}, swift), Error);
  SubsetSearch search({.n_items = 3, .n_skipped = 1}, swift);
  search.propose();
  EXPECT_THROW(search.tell(NAN), Error);
}

}  // namespace
}  // namespace forerun
