// What a request says about sampling and stopping, checked.
//
// Each throws Error{kInvalidArgument} with one line naming the first option that makes no sense:
// for any model, so that it can be refused before one is loaded, or for a vocabulary of n_vocab
// tokens.
#pragma once

#include <forerun/generation_options.h>
#include <forerun/sampling_options.h>

namespace forerun {

void validate(const SamplingOptions& options);
void validate(const SamplingOptions& options, int n_vocab);

void validate(const GenerationOptions& options);
void validate(const GenerationOptions& options, int n_vocab);

}  // namespace forerun
