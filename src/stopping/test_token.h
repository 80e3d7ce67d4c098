// A drafted token as stopping rules see it, for tests.
#pragma once

#include "stopping/stopping_rule.h"

namespace forerun::test {

inline DraftedToken drafted(int depth, double probability) {
  return {.logits = {},
          .sums = {},
          .token = TokenId{1},
          .probability = probability,
          .depth = depth,
          .n_answer = depth};
}

}  // namespace forerun::test
