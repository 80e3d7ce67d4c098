// Where a Gaussian process promises most: the maximum of its upper confidence bound,
// mean + kappa * deviation, over the unit cube (Srinivas, Krause, Kakade, Seeger: "Gaussian
// Process Optimization in the Bandit Setting", ICML 2010).
//
// The maximum is looked for as the Python package bayes_opt 1.4 and 1.5 does, which SWIFT and
// Draft & Verify use: uniform probes, then L-BFGS within the cube from the best probe, from
// the best observed point and from random points. Its limits are numbers of evaluations, so
// the same process, options and random numbers give the same point on any machine load.
//
// Costs, for N observations in n dimensions: N (N + 2 n) multiplications a probe, about 2.5
// times that an evaluation of the local searches, which also take the gradient.
#pragma once

#include <span>
#include <vector>

#include "optimise/gaussian_process.h"
#include "optimise/random.h"

namespace forerun {

struct UpperConfidenceOptions {
  // How much a point is worth that little is known about. SWIFT: 2.5; Draft & Verify and
  // KNN-SSD: 2.576.
  double kappa = 2.576;
  // As published. A search beside other work has less time and takes fewer of each.
  int n_probes = 10'000;
  int n_random_starts = 10;
  int max_evaluations = 100;  // of each local search; 0: probes only
};

struct PromisingPoint {
  std::vector<double> point;
  double bound = 0;
};

// The bound at a point; fills `gradient` unless it is empty.
double upper_confidence(const GaussianProcess& process, double kappa, std::span<const double> point,
                        std::span<double> gradient = {});

// Throws Error for options that make no sense. Before any observation every point promises
// the same, and the first probe is returned.
PromisingPoint most_promising(const GaussianProcess& process, const UpperConfidenceOptions& options,
                              Random& random);

}  // namespace forerun
