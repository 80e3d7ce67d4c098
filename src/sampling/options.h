// What a request says about sampling, checked.
#pragma once

#include <forerun/sampling_options.h>

namespace forerun {

// Throws Error{kInvalidArgument} with one line naming the first option that makes no
// sense for a vocabulary of n_vocab tokens.
void validate(const SamplingOptions& options, int n_vocab);

}  // namespace forerun
