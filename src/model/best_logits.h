// What is known of a row's logits where they were computed: our kernels on GPUs write it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sampling/logits_view.h"

namespace forerun {

struct BestOfRow {
  SoftmaxSums sums;
  int64_t n;                        // the first of the tokens, the others being nothing
  ScoredToken tokens[kBestLogits];  // BestLogits::tokens
};
static_assert(std::is_trivially_copyable_v<BestOfRow> && sizeof(BestOfRow) % sizeof(float) == 0);

}  // namespace forerun
