// Options of a sampler that draws from the model's distribution as it is.
#pragma once

#include <forerun/sampling_options.h>

#include <cstdint>

namespace forerun::test {

inline SamplingOptions plain_sampling(uint64_t seed) {
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  options.seed = seed;
  return options;
}

}  // namespace forerun::test
