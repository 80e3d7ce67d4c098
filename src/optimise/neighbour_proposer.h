// Proposals that change the best set a little. Our own; no paper has it.
//
// SWIFT's random sets of many items all score alike, near nothing: each skips dozens of items
// that are needed. This starts from a set that scores well, the empty one if sizes may change,
// and goes uphill from there by group testing (Dorfman, 1943), with chances in place of proofs:
//
// - Of each item it knows the chance that it is needed: that skipping it lowers the score by
//   some 10 % rather than raising it a little. Bayes' rule updates it with every score.
// - A change adds the items that are least doubted, as many as leave an even chance that none of
//   them is needed: then the score tells most. It keeps them once that chance is above 0.9; until
//   then they stay out, a little less or more doubted.
// - Or it removes the most doubted, as many as one needed item among them outweighs: some slip in
//   when scores are noisy or the set was small and they hardly mattered.
// - The kind of change with the better chance is the likelier one. With a fixed size a change
//   swaps, the least doubted for the most doubted.
// - No item is ever beyond doubt, so all are tried again in the end.
// - The best set is scored again after changes and when nothing succeeds: that is how the noise
//   is known, and how lucky scores do not block the way.
//
// On 270 items of which 70 are needed, after 1,000 scores, in 40 searches with seeds that its
// constants were not chosen on: without noise all have the right 200; with noise of 1 % 38 have at
// least 95 % of their speedup, with 2 % 20 have, and the worst is where it began. With 5 % it
// does not dare to leave the empty set: average over more text then. Sets that do not pay must
// score less than those that do, the worse the less: a score that is cut off at "no
// speculation" shows no way up.
#pragma once

#include <memory>

#include "optimise/subset_proposer.h"

namespace forerun {

std::unique_ptr<SubsetProposer> make_neighbour_proposer(int n_items, int n_skipped,
                                                        const NeighbourOptions& options);

}  // namespace forerun
