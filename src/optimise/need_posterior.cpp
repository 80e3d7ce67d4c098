#include "optimise/need_posterior.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Sweeps over all items before the first draw, and draws, a sweep each.
constexpr int kFirstSweeps = 10;
constexpr int kDraws = 30;
constexpr double kLeastDoubtLeft = 0.01;
// No test is worth more than this: scores are noisy and effects not quite additive.
constexpr double kMostEvidence = 4;
// A test is worth 1/e after so many others.
constexpr double kTestsUntilFaded = 200;
constexpr size_t kMaxTests = 1000;

// An item's part in a test.
struct Member {
  size_t test;
  double evidence;
};

}  // namespace

NeedPosterior::NeedPosterior(int n_items, double needed_share)
    : needed_share_(needed_share), begin_(static_cast<size_t>(n_items), needed_share), doubts_(begin_) {
  draw();
}

void NeedPosterior::draw() {
  const size_t n_items = begin_.size();
  std::vector<std::vector<Member>> members(n_items);
  for (size_t t = 0; t < tests_.size(); ++t) {
    const auto age = static_cast<double>(tests_.size() - t);
    const double evidence = tests_[t].evidence * std::exp(-age / kTestsUntilFaded);
    for (const int item : tests_[t].items)
      members[static_cast<size_t>(item)].push_back({.test = t, .evidence = evidence});
  }
  Random random(static_cast<uint64_t>(n_learnt_));
  std::vector<int> needed(n_items);
  std::vector<int> n_needed(tests_.size());  // items of each test
  const auto set = [&](size_t item, int is_needed) {
    if (needed[item] == is_needed) return;
    needed[item] = is_needed;
    for (const Member& member : members[item]) n_needed[member.test] += 2 * is_needed - 1;
  };
  for (size_t i = 0; i < n_items; ++i) set(i, random.uniform() < begin_[i] ? 1 : 0);

  const double prior = std::log(needed_share_ / (1 - needed_share_));
  std::vector<double> sums(n_items);
  draws_.clear();
  for (int sweep = 0; sweep < kFirstSweeps + kDraws; ++sweep) {
    for (size_t i = 0; i < n_items; ++i) {
      double log_odds = prior;
      // With another needed item in the group a test says nothing of this one.
      for (const Member& member : members[i]) {
        log_odds += n_needed[member.test] == needed[i] ? member.evidence : 0;
      }
      const double chance = 1 / (1 + std::exp(-log_odds));
      set(i, random.uniform() < chance ? 1 : 0);
      if (sweep >= kFirstSweeps) sums[i] += chance;
    }
    if (sweep >= kFirstSweeps) draws_.emplace_back(needed.begin(), needed.end());
  }
  for (size_t i = 0; i < n_items; ++i) {
    doubts_[i] = std::clamp(sums[i] / kDraws, kLeastDoubtLeft, 1 - kLeastDoubtLeft);
  }
}

std::vector<double> NeedPosterior::none_needed_of_first(std::span<const int> items) const {
  std::vector<double> chances(items.size() + 1);
  for (const std::vector<bool>& needed : draws_) {
    size_t n = 0;
    chances[0] += 1.0 / kDraws;
    while (n < items.size() && !needed[static_cast<size_t>(items[n])]) chances[++n] += 1.0 / kDraws;
  }
  return chances;
}

double NeedPosterior::none_needed(std::span<const int> items) const {
  return none_needed_of_first(items).back();
}

void NeedPosterior::learn(std::vector<int> items, double evidence) {
  CHECK(!std::isnan(evidence));
  tests_.push_back(
      {.items = std::move(items), .evidence = std::clamp(evidence, -kMostEvidence, kMostEvidence)});
  if (tests_.size() > kMaxTests) tests_.pop_front();
  ++n_learnt_;
  begin_ = doubts_;
  draw();
}

Json NeedPosterior::to_json() const {
  Json tests = Json::array();
  for (const Test& test : tests_) tests.push_back({test.evidence, test.items});
  return {{"n_learnt", n_learnt_}, {"begin", begin_}, {"tests", std::move(tests)}};
}

void NeedPosterior::restore(const Json& json) {
  const auto begin = json.at("begin").get<std::vector<double>>();
  bool makes_sense = begin.size() == begin_.size();
  for (const double doubt : begin) makes_sense &= doubt >= 0 && doubt <= 1;
  const auto n_items = static_cast<int>(begin_.size());
  std::deque<Test> tests;
  for (const Json& entry : json.at("tests")) {
    tests.push_back(
        {.items = entry.at(1).get<std::vector<int>>(), .evidence = entry.at(0).get<double>()});
    makes_sense &= std::abs(tests.back().evidence) <= kMostEvidence;
    for (const int item : tests.back().items) makes_sense &= item >= 0 && item < n_items;
  }
  n_learnt_ = json.at("n_learnt").get<int>();
  makes_sense &= n_learnt_ >= 0 && tests.size() <= kMaxTests;
  if (!makes_sense) fail(ErrorCode::kInvalidFile, "numbers are out of range");
  begin_ = begin;
  tests_ = std::move(tests);
  draw();
}

}  // namespace forerun
