// SSSD's own rule for the size of a tree (Marzollo et al., "SSSD: Simply-Scalable
// Speculative Decoding", and its published engine): as many rows as the hardware computes
// in the time it needs to read the weights, divided by the requests that share a pass,
// with the caps of that engine.
//
// There the ratio is that of a large matrix product to a large addition. Here it comes from
// what passes cost: the time of a pass of one row, which is bound by memory, over the
// time a row takes in a large pass, which is bound by arithmetic. For 16-bit weights both
// are the same number.
#pragma once

#include "cost/pass_costs.h"

namespace forerun {

// Of one tree, when so many requests share a pass: the root is not counted.
int roofline_nodes(const PassCosts& costs, bool has_accelerator, int n_requests);

}  // namespace forerun
