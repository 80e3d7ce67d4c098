#include "tune/domain_anchors.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/check.h"

namespace forerun {
namespace {

void to_unit_length(std::span<float> vector) {
  double squares = 0;
  for (const float x : vector) squares += static_cast<double>(x) * static_cast<double>(x);
  if (!(squares > 0)) return;  // no direction: K-means sees the origin
  const auto scale = static_cast<float>(1 / std::sqrt(squares));
  for (float& x : vector) x *= scale;
}

void rows_to_unit_length(std::span<float> rows, int n_embd) {
  const auto n = static_cast<size_t>(n_embd);
  for (size_t i = 0; i < rows.size(); i += n) to_unit_length(rows.subspan(i, n));
}

std::vector<float> cluster(const DomainVectors& domain, int n_embd, const KMeansOptions& options) {
  std::vector<float> units = domain.values;
  rows_to_unit_length(units, n_embd);
  std::vector<float> anchors = k_means({units, n_embd}, options).centroids;
  rows_to_unit_length(anchors, n_embd);
  return anchors;
}

// In the order of their first points.
std::vector<int> renumbered(const std::vector<int>& clusters) {
  std::map<int, int> numbers;
  std::vector<int> result;
  for (const int c : clusters) {
    result.push_back(numbers.emplace(c, static_cast<int>(numbers.size())).first->second);
  }
  return result;
}

double nearest_cosine(std::span<const float> anchors, std::span<const float> vector) {
  const auto nearest = nearest_by_cosine({anchors, static_cast<int>(vector.size())}, vector);
  return nearest ? nearest->cosine : -1;
}

DomainVectors without(const DomainVectors& domain, size_t begin, size_t n) {
  DomainVectors rest{.name = domain.name, .values = domain.values};
  const auto first = rest.values.begin() + static_cast<std::ptrdiff_t>(begin);
  rest.values.erase(first, first + static_cast<std::ptrdiff_t>(n));
  return rest;
}

}  // namespace

std::vector<float> make_anchors(const DomainVectors& domain, int n_embd, int n_clusters) {
  return cluster(domain, n_embd, {.n_clusters = n_clusters});
}

std::vector<int> find_domains(const DomainVectors& prompts, int n_embd, int n_domains) {
  const auto n = static_cast<size_t>(n_embd);
  std::vector<float> units = prompts.values;
  rows_to_unit_length(units, n_embd);
  const Clusters clusters = k_means({units, n_embd}, {.n_clusters = n_domains});
  std::vector<int> sizes(static_cast<size_t>(clusters.n_clusters), 0);
  for (const int c : clusters.assignment) ++sizes[static_cast<size_t>(c)];
  std::vector<float> shared;  // centroids of clusters that have several prompts
  std::vector<int> numbers;   // of those clusters
  for (size_t c = 0; c < sizes.size(); ++c) {
    if (sizes[c] < 2) continue;
    const auto centroid = std::span(clusters.centroids).subspan(c * n, n);
    shared.insert(shared.end(), centroid.begin(), centroid.end());
    numbers.push_back(static_cast<int>(c));
  }
  if (numbers.empty()) return std::vector<int>(clusters.assignment.size(), 0);
  std::vector<int> result = clusters.assignment;
  for (size_t i = 0; i < result.size(); ++i) {
    if (sizes[static_cast<size_t>(result[i])] >= 2) continue;
    const auto nearest = nearest_by_cosine({shared, n_embd}, std::span(units).subspan(i * n, n));
    result[i] = numbers[nearest ? static_cast<size_t>(nearest->index) : 0];
  }
  return renumbered(result);
}

std::vector<size_t> representatives(const DomainVectors& domain, int n_embd,
                                    std::span<const float> anchors, int n) {
  const auto width = static_cast<size_t>(n_embd);
  const size_t n_anchors = anchors.size() / width;
  std::vector<float> left = domain.values;
  std::vector<size_t> numbers(left.size() / width);  // of those that are left
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  std::vector<size_t> chosen;
  // Round after round, a prompt for each anchor.
  for (size_t i = 0; chosen.size() < static_cast<size_t>(n) && !numbers.empty(); ++i) {
    const auto nearest =
        nearest_by_cosine({left, n_embd}, anchors.subspan(i % n_anchors * width, width));
    const auto at = nearest ? static_cast<std::ptrdiff_t>(nearest->index) : 0;
    chosen.push_back(numbers[static_cast<size_t>(at)]);
    numbers.erase(numbers.begin() + at);
    const auto first = left.begin() + at * static_cast<std::ptrdiff_t>(width);
    left.erase(first, first + static_cast<std::ptrdiff_t>(width));
  }
  return chosen;
}

RoutingCheck check_routing(std::span<const DomainVectors> domains, int n_embd, int n_clusters) {
  // One start each: there are as many clusterings as prompts.
  const KMeansOptions quick{.n_clusters = n_clusters, .n_restarts = 1};
  const auto n = static_cast<size_t>(n_embd);
  std::vector<std::vector<float>> anchors;
  for (const DomainVectors& domain : domains) anchors.push_back(cluster(domain, n_embd, quick));
  RoutingCheck check;
  std::vector<double> own_cosines;
  for (size_t d = 0; d < domains.size(); ++d) {
    CHECK(domains[d].values.size() >= 2 * n);
    check.n_prompts.push_back(static_cast<int>(domains[d].values.size() / n));
    int& n_at_home = check.n_at_home.emplace_back(0);
    for (size_t begin = 0; begin < domains[d].values.size(); begin += n) {
      const auto vector = std::span(domains[d].values).subspan(begin, n);
      const double own = nearest_cosine(cluster(without(domains[d], begin, n), n_embd, quick), vector);
      double other = -1;
      for (size_t o = 0; o < domains.size(); ++o) {
        if (o != d) other = std::max(other, nearest_cosine(anchors[o], vector));
      }
      n_at_home += own > other ? 1 : 0;
      own_cosines.push_back(own);
    }
  }
  std::sort(own_cosines.begin(), own_cosines.end());
  const auto outliers =
      static_cast<size_t>(RoutingCheck::kOutliers * static_cast<double>(own_cosines.size()));
  check.least_cosine = own_cosines.at(outliers);
  return check;
}

}  // namespace forerun
