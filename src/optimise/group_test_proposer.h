// Proposals from a Bayesian model of which items are needed: the strategy `bayesian`. Our own.
//
// Draft & Verify's Gaussian process knows nothing in hundreds of dimensions: all sets are far
// from each other. What skipping does is simple, though: most items may go at a small gain, and
// a needed one costs much, whatever else is skipped. So the model here is of the items
// (need_posterior.h), and it learns from changes of the best set so far, beginning with the empty
// one:
//
// - A change adds the items that are least likely to be needed, as many as leave a chance of 0.65
//   that none is, or removes the most suspicious ones, as many as one needed item among them
//   outweighs. The kind of change with the better chance is the likelier one.
// - Its score is a test of these items: did it lose what a needed item costs?
// - Additions stay once it is likely that none of them is needed, removals once they gained. What
//   turns out to be worse than skipping nothing is given up.
//
// It differs from neighbour_proposer.h in that all tests so far speak together, rather than each
// once when it is made, so it needs fewer. On 270 items of which 70 are needed, in 40 searches
// with seeds that its constants were not chosen on: without noise all have the right 200 after
// 350 scores (neighbour: 4 have 95 % of their speedup). After 1,000 scores with noise of 1 % all
// have 95 %, with 2 % 30 have (neighbour: 40 and 26), with 5 % none: average over more text then.
// Where every item is needed, noise of 2 % hides losses of some 5 % from it; neighbour is more
// careful there.
#pragma once

#include <memory>

#include "optimise/subset_proposer.h"

namespace forerun {

// Sets are of any size.
std::unique_ptr<SubsetProposer> make_group_test_proposer(int n_items, const NeighbourOptions& options);

}  // namespace forerun
