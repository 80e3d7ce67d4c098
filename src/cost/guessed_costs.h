// What passes are likely to cost before any was seen: a bound from the bytes they read.
#pragma once

#include <cstdint>

#include "cost/calibration.h"

namespace forerun {

// Of weights that a pass of one row reads: more rows use more of a mixture's experts.
uint64_t n_bytes_read(const Model& model);

// For the model of this executor: by its bytes and what memory usually does; with rows that each
// add a part of that, as kernels usually have it.
Calibration guess_costs(const Executor& executor);

}  // namespace forerun
