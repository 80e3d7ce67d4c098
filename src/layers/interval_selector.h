// Selectors that look at the text every so many steps, and draft with what they saw until they
// look again: when, and how much time that may take, is theirs in common.
#pragma once

#include <optional>

#include "core/option_visitor.h"
#include "layers/layer_selector.h"
#include "layers/time_share.h"

namespace forerun {

struct IntervalOptions {
  int interval = 64;    // steps between two looks at a request
  double share = 0.03;  // of the time, for looking; 1: no limit

  void describe(OptionVisitor& visitor);
};

// Tokens at the end of a text.
struct RecentText {
  size_t n_tokens = 0;  // that came with the last few steps
  size_t n_new = 0;     // those of them that came since the last look
};

class IntervalSelector : public LayerSelector {
 public:
  NextPlan begin(const RequestView& request) final;

 protected:
  IntervalSelector(const IntervalOptions& options, const SelectorResources& resources)
      : executor_(resources.executor),
        costs_(resources.costs),
        options_(options),
        time_(options.share) {}

  // Looks at a request's text. Runs passes. false: there is too little text. May throw
  // Error{kContextFull}: no room now.
  virtual bool look(const RequestView& request, const RecentText& recent) = 0;
  // What to draft with behind `n_context` tokens, after what was seen, if anything was.
  virtual std::optional<DraftPlan> plan(int /*n_context*/) { return plan_; }
  // Whether the first look, which takes so many seconds, is sure to pay itself back, so that it need not
  // wait. May take time.
  virtual bool promises_much(const RequestView& /*request*/, double /*seconds*/, TimeShare& /*time*/) {
    return false;
  }
  // Seconds that a look at a text of `n_context` tokens takes, as far as is known beforehand.
  virtual double look_seconds(int n_context) const = 0;

  Executor& executor_;
  const PassCosts& costs_;
  std::optional<DraftPlan> plan_;  // of the last look, where it says all there is to say

 private:
  // How far a request is.
  struct Progress;
  std::optional<DraftPlan> next_plan(Progress& progress);
  void look_at(Progress& progress, int n_context);

  IntervalOptions options_;
  TimeShare time_;
  double last_look_seconds_ = 0;
  int n_vain_ = 0;   // looks in a row after which there was no plan
  int n_pause_ = 0;  // steps of any request to go before the next look
};

}  // namespace forerun
