// How often what some layers draft is the model's own: counts that fade, so that the latest
// drafts, about fifty of them, count most.
#pragma once

#include "layers/layer_selector.h"

namespace forerun {

struct AgreementCount {
  double n_agreed = 0;
  double n_tested = 0;

  double chance() const { return n_agreed / n_tested; }
  void observe(const ChainOutcome& outcome) {
    constexpr double kKept = 0.98;
    n_agreed = kKept * n_agreed + outcome.n_agreed;
    n_tested = kKept * n_tested + outcome.n_tested;
  }
};

}  // namespace forerun
