// How much of the model does next to nothing to the text at hand, at the price of one pass.
//
// To choose layers takes passes that must be paid back, so it waits until enough text was made
// (time_share.h). Where single blocks hardly turn the states that pass through them, leaving those
// out is sure to pay, and waiting is what costs: then the first choice is made at once, for a request
// whose answer has enough tokens to come.
//
// Errors of blocks left out add up like steps in any direction: the square of the angle that the
// model's end is off by is about the sum of theirs.
//
// Not thread-safe.
#pragma once

#include <optional>

#include "cost/pass_costs.h"
#include "layers/block_states.h"
#include "layers/time_share.h"

namespace forerun {

// The blocks that run when those are left out which turn the states the least for what they cost,
// as long as all of them together turn them by a few degrees at most. `states` are of a text with
// `n_context` tokens.
LayerSet without_idle_blocks(const BlockStates& states, const PassCosts& costs, int n_context);

class IdleBlockCheck {
 public:
  // Both outlive it.
  IdleBlockCheck(Executor& executor, const PassCosts& costs) : executor_(executor), costs_(costs) {}

  // Whether it is clear that leaving blocks out pays back the seconds that choosing them takes: true
  // once. Looks once, when there is time for it or a few tokens were made.
  bool promises_much(const RequestView& request, double choosing, TimeShare& time);
  // It has looked, and there is nothing more to be said.
  bool is_done() const { return speedup_ && *speedup_ < kLeastSpeedup; }
  // Which blocks can go is known already.
  void skip() { speedup_ = 1; }

 private:
  // What drafts with the other blocks are to bring at least.
  static constexpr double kLeastSpeedup = 1.2;

  Executor& executor_;
  const PassCosts& costs_;
  std::optional<double> speedup_;  // that drafts are likely to bring; nullopt: not looked yet
};

}  // namespace forerun
