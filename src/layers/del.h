// Drafts that leave the model early, at a layer chosen by how often each would have been right:
// DEL.
//
// Entezari Zarch et al., "DEL: Context-Aware Dynamic Exit Layer for Efficient Self-Speculative
// Decoding", 2025. What every layer would say if the model ended there is compared with the
// text; counts of hits and misses fade. The exit l and the length of drafts n are those with
// the most expected tokens per layer run, E(n) / (L + n l), where E(n) = 1 + a_l E(n - 1), and
// a draft stops where the exit is less sure than halfway between what it was on hits and on
// misses.
//
// The paper looks at every verified token (an interval of 1 does so too); here at the last ones every
// so many steps, since what all layers say costs a pass through the head for each. Nothing that drafts
// computed is kept for the verification, as the paper does it: verification computes all layers.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "layers/interval_selector.h"

namespace forerun {

struct DelOptions {
  IntervalOptions when = {};
  int window = 4;       // of the last verifications, at most
  double decay = 0.95;  // of counts, per token

  void describe(OptionVisitor& visitor);
};

// What exits have said: hits and misses, fading.
class ExitCounts {
 public:
  ExitCounts(int n_layers, double decay)
      : decay_(decay), exits_(static_cast<size_t>(std::max(0, n_layers - 1))) {}

  // At the exit behind `n_run` layers, 1 to n_layers - 1. A token of all exits, then fade().
  void add(int n_run, bool is_hit, double confidence);
  void fade();
  // nullopt: better not to draft.
  std::optional<DraftPlan> best() const;

 private:
  struct Counts {
    double n = 0;
    double confidence = 0;  // sum
  };
  double decay_;
  // Of misses, of hits; [0]: behind the first layer.
  std::vector<std::array<Counts, 2>> exits_;
};

std::unique_ptr<LayerSelector> make_del(const DelOptions& options, const SelectorResources& resources);

}  // namespace forerun
