// Goes on while one more token, or a few, are worth what they take. Our own.
//
// A draft and the pass that verifies it take time, and give tokens. Over many drafts the most
// tokens per second come of stopping each where what is to be expected of further tokens is less
// than what the time they take brings elsewhere: at the rate of all drafts so far.
//
// What is to be expected is learnt: how often a token is taken, by its probability, if those
// before it are; and how often one is that follows a token of some probability, which is what is
// known of a token before it is drafted. Old observations fade.
#pragma once

#include <array>
#include <vector>

#include "budget/calibration.h"
#include "lookahead/lookahead.h"

namespace forerun {

class CostLookahead final : public LookaheadPolicy {
 public:
  // `costs` are of the model that verifies, and outlive this.
  explicit CostLookahead(const Calibration& costs);
  std::unique_ptr<Lookahead> begin() override;

 private:
  class OfRequest;

  static constexpr size_t kBins = 12;
  static size_t bin_of(double probability);
  struct Chance {
    double n_agreed;
    double n_tested;
    double value() const { return n_agreed / n_tested; }
    void add(bool agreed);
  };

  const Calibration& costs_;
  std::array<Chance, kBins> of_token_;  // by its own probability
  std::array<Chance, kBins> of_next_;   // by that of the token before it
  double n_tokens_;                     // that drafts so far gave, and their seconds; fading
  double seconds_;
};

}  // namespace forerun
