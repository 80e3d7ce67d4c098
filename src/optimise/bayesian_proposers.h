// Proposals from a Gaussian process over all scores so far: SWIFT's and Draft & Verify's.
//
// SWIFT: a random set of m items, registered as a corner of the unit cube; every 25th
// proposal is the point with the highest upper confidence bound, of which the m largest
// coordinates are skipped.
//
// Self-SD: the point with the highest upper confidence bound each time, of which the
// coordinates above a half are skipped. The first point is random unless sets were given.
//
// Both register the point rather than the set, as published, unless asked otherwise
// (RegisteredPoint).
#pragma once

#include <memory>

#include "optimise/subset_proposer.h"

namespace forerun {

std::unique_ptr<SubsetProposer> make_swift_proposer(int n_items, int n_skipped,
                                                    const BayesianOptions& options);
std::unique_ptr<SubsetProposer> make_self_sd_proposer(int n_items, const BayesianOptions& options);

}  // namespace forerun
