// Makes the anchors of domains from prompts whose domain is known, and says how well prompts
// find back to theirs. Where nobody said which domains there are, finds some.
//
// K-means in each domain by itself, on vectors of unit length, since it is directions that are
// compared; anchors are the directions of the centroids. KNN-SSD's code clusters the vectors
// as they are, its paper all domains at once.
#pragma once

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "optimise/kmeans.h"

namespace forerun {

// Vectors of the prompts of one domain, one after another.
struct DomainVectors {
  std::string name;
  std::vector<float> values;

  PointRows rows(int n_embd) const { return {values, n_embd}; }
};

// At most `n_clusters` unit vectors. Throws Error for vectors that are not finite.
std::vector<float> make_anchors(const DomainVectors& domain, int n_embd, int n_clusters);

// Which domain each prompt is of, where nobody said: K-means over all of them, on vectors of
// unit length too. Domains are numbered from 0 in the order of their first prompts, and each
// has two prompts or more: one that is alone in its cluster goes to the nearest of the others,
// so there may be fewer than `n_domains`. Throws Error for vectors that are not finite.
std::vector<int> find_domains(const DomainVectors& prompts, int n_embd, int n_domains);

// Which prompts stand for a domain: those nearest to its anchors, of as many anchors as
// possible. At most `n`, as their numbers, and all different.
std::vector<size_t> representatives(const DomainVectors& domain, int n_embd,
                                    std::span<const float> anchors, int n);

// What becomes of a prompt when the anchors of its own domain are made without it.
struct RoutingCheck {
  std::vector<int> n_prompts;  // per domain
  std::vector<int> n_at_home;  // of them, nearest to an anchor of their own domain
  // All but this share of the prompts are as near to an anchor of their own domain.
  static constexpr double kOutliers = 0.02;
  double least_cosine = 1;

  int n_all() const { return std::reduce(n_prompts.begin(), n_prompts.end()); }
  int n_all_at_home() const { return std::reduce(n_at_home.begin(), n_at_home.end()); }
};

// Every domain has two prompts or more.
RoutingCheck check_routing(std::span<const DomainVectors> domains, int n_embd, int n_clusters);

}  // namespace forerun
