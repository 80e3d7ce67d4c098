#include "tune/domain_anchors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.h"

namespace forerun {
namespace {

constexpr int kDimensions = 16;

// Points around a direction, of any length.
void add_points(std::vector<float>& values, int direction, int n, double spread, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, spread);
  for (int i = 0; i < n; ++i) {
    const double length = 0.1 + 3.0 * (i % 7);
    for (int k = 0; k < kDimensions; ++k) {
      values.push_back(static_cast<float>(length * ((k == direction ? 1 : 0) + normal(random))));
    }
  }
}

TEST(DomainAnchors, AreTheDirectionsOfClusters) {
  DomainVectors domain{.name = "two things", .values = {}};
  add_points(domain.values, 3, 20, 0.02, 1);
  add_points(domain.values, 8, 20, 0.02, 2);
  const std::vector<float> anchors = make_anchors(domain, kDimensions, 2);
  ASSERT_EQ(anchors.size(), size_t{2 * kDimensions});
  bool has_first = false, has_second = false;
  for (size_t i = 0; i < 2; ++i) {
    const auto anchor = std::span(anchors).subspan(i * kDimensions, kDimensions);
    double squares = 0;
    for (const float x : anchor) squares += x * x;
    EXPECT_NEAR(squares, 1, 1e-5);
    has_first |= anchor[3] > 0.99f;
    has_second |= anchor[8] > 0.99f;
  }
  EXPECT_TRUE(has_first && has_second);
  EXPECT_EQ(make_anchors(domain, kDimensions, 100).size(), domain.values.size())
      << "no more than points";
  domain.values[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(make_anchors(domain, kDimensions, 2), Error);
}

TEST(DomainAnchors, DomainsAreFoundWhereNobodySaidWhich) {
  DomainVectors prompts{.name = "", .values = {}};
  for (const int direction : {3, 8, 3, 11}) add_points(prompts.values, direction, 10, 0.02, 1);
  const std::vector<int> found = find_domains(prompts, kDimensions, 3);
  ASSERT_EQ(found.size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(found[i], (std::vector<int>{0, 1, 0, 2}[i / 10])) << "prompt " << i;
  }
  EXPECT_EQ(find_domains(prompts, kDimensions, 3), found) << "the same each time";
  prompts.values[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(find_domains(prompts, kDimensions, 3), Error);
}

TEST(DomainAnchors, NoPromptThatWasFoundIsADomainByItself) {
  DomainVectors prompts{.name = "", .values = {}};
  add_points(prompts.values, 3, 10, 0.02, 1);
  add_points(prompts.values, 8, 10, 0.02, 2);
  // Like no other, but more like the second ones.
  for (int k = 0; k < kDimensions; ++k) prompts.values.push_back(k == 8 ? 0.3f : k == 12 ? 1.0f : 0.0f);
  const std::vector<int> found = find_domains(prompts, kDimensions, 3);
  EXPECT_EQ(found.front(), 0);
  EXPECT_EQ(found.back(), 1);
  EXPECT_EQ(*std::max_element(found.begin(), found.end()), 1);

  DomainVectors different{.name = "", .values = {}};
  for (int d = 0; d < 4; ++d) add_points(different.values, d, 1, 0.0, 1);
  EXPECT_EQ(find_domains(different, kDimensions, 4), (std::vector<int>{0, 0, 0, 0}));
}

TEST(DomainAnchors, RepresentativesAreOfAllAnchors) {
  DomainVectors domain{.name = "", .values = {}};
  add_points(domain.values, 3, 20, 0.1, 1);
  add_points(domain.values, 8, 20, 0.1, 2);
  const std::vector<float> anchors = make_anchors(domain, kDimensions, 2);
  auto chosen = representatives(domain, kDimensions, anchors, 4);
  ASSERT_EQ(chosen.size(), 4u);
  EXPECT_EQ(std::count_if(chosen.begin(), chosen.end(), [](size_t i) { return i < 20; }), 2);
  // The first is nearer to its anchor than any other.
  const auto first = std::span(anchors).first(kDimensions);
  const auto nearest = nearest_by_cosine(domain.rows(kDimensions), first);
  EXPECT_EQ(chosen[0], static_cast<size_t>(nearest->index));
  chosen = representatives(domain, kDimensions, anchors, 100);
  std::sort(chosen.begin(), chosen.end());
  ASSERT_EQ(chosen.size(), 40u) << "each once";
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(chosen[i], i);
}

TEST(DomainAnchors, PromptsOfDistinctDomainsFindHome) {
  std::vector<DomainVectors> domains;
  for (int d = 0; d < 4; ++d) {
    domains.push_back({.name = std::to_string(d), .values = {}});
    add_points(domains.back().values, d, 15 + d, 0.05, static_cast<uint32_t>(d));
  }
  const RoutingCheck check = check_routing(domains, kDimensions, 3);
  EXPECT_EQ(check.n_prompts, (std::vector<int>{15, 16, 17, 18}));
  EXPECT_EQ(check.n_at_home, check.n_prompts);
  EXPECT_EQ(check.n_all(), 66);
  EXPECT_EQ(check.n_all_at_home(), 66);
  EXPECT_GT(check.least_cosine, 0.9);
  EXPECT_LT(check.least_cosine, 1);
}

// A prompt must not find itself among the anchors: domains that are alike are told apart no
// better than by chance.
TEST(DomainAnchors, PromptsAreHeldOutOfTheirOwnAnchors) {
  std::vector<DomainVectors> domains(2);
  for (uint32_t d = 0; d < 2; ++d) add_points(domains[d].values, 0, 60, 0.3, 10 + d);
  const RoutingCheck check = check_routing(domains, kDimensions, 60);
  EXPECT_NEAR(check.n_all_at_home() / 120.0, 0.5, 0.2);
  EXPECT_LT(check.least_cosine, 0.9);
}

// A few odd prompts do not pull the threshold down.
TEST(DomainAnchors, OutliersAreLeftOutOfTheThreshold) {
  std::vector<DomainVectors> domains(2);
  for (int d = 0; d < 2; ++d) add_points(domains[static_cast<size_t>(d)].values, d, 100, 0.02, 20);
  const double before = check_routing(domains, kDimensions, 3).least_cosine;
  add_points(domains[0].values, 9, 1, 0.02, 30);
  EXPECT_NEAR(check_routing(domains, kDimensions, 3).least_cosine, before, 0.02);
}

}  // namespace
}  // namespace forerun
