// Which blocks of the model run when it drafts for itself: the seam that every selector
// implements.
//
// A LayerSelector belongs to the engine and holds what requests share (the best set so far,
// sets of domains).
//
// Not thread-safe.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string_view>

#include "cost/pass_costs.h"
#include "model/executor.h"
#include "request/request_view.h"
#include "stopping/thresholds.h"

namespace forerun {

// How to draft now.
struct DraftPlan {
  LayerSet layers;
  int max_tokens = std::numeric_limits<int>::max();
  std::optional<double> threshold = std::nullopt;  // nullopt: the drafter's own
  std::optional<double> agreement = std::nullopt;  // of drafted tokens with the model's, if known
};

// Asked before every draft of a request; may run passes of its own over its text. nullopt: better not to
// draft.
using NextPlan = std::function<std::optional<DraftPlan>()>;

class LayerSelector {
 public:
  virtual ~LayerSelector() = default;
  // Both the selector and the request outlive what it returns.
  virtual NextPlan begin(const RequestView& request) = 0;
  // Of a draft that was made with the latest plan of its request.
  virtual void observe(const ChainOutcome& /*outcome*/) {}
  // A request ended in good order.
  virtual void finish() {}
  // Whether it needs RequestView::prompt_state().
  virtual bool wants_prompt_state() const { return false; }
  // What it chose, for another run to begin with: nullopt where it has not looked yet, all blocks where
  // it found none to leave out.
  virtual std::optional<LayerSet> learnt() const { return std::nullopt; }
  virtual void restore(const LayerSet& /*learnt*/) {}
};

// What selectors are made with; the executor and the costs outlive them.
struct SelectorResources {
  Executor& executor;
  const PassCosts& costs;
  double threshold = 0;                             // behind a less probable token drafts end
  std::function<void(std::string_view)> warn = {};  // gets what went wrong beside requests; may be empty
};

// The same set for all requests, always; nullopt: better not to draft. With a threshold, drafts end
// behind a token that is less probable, and it follows what becomes of them.
class FixedLayers final : public LayerSelector {
 public:
  explicit FixedLayers(const std::optional<LayerSet>& layers,
                       const std::optional<AdaptiveThreshold>& threshold = std::nullopt)
      : layers_(layers), threshold_(threshold) {}
  NextPlan begin(const RequestView& /*request*/) override {
    return [this]() -> std::optional<DraftPlan> {
      if (!layers_) return std::nullopt;
      return DraftPlan{.layers = *layers_,
                       .threshold = threshold_ ? std::optional(threshold_->value()) : std::nullopt};
    };
  }
  void observe(const ChainOutcome& outcome) override {
    if (threshold_) threshold_->observe(outcome);
  }

 private:
  std::optional<LayerSet> layers_;
  std::optional<AdaptiveThreshold> threshold_;
};

// Leaves out the given share of the blocks, spread evenly, and none of the first and the
// last layer, which no model can do without.
LayerSet uniform_layers(int n_layers, double skipped_share);

}  // namespace forerun
