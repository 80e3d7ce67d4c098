#include "layers/draft_gate.h"

#include <algorithm>
#include <cmath>

namespace forerun {
namespace {

// How much better drafting must look: estimates are rough.
constexpr double kMargin = 1.08;
// Of the first layers.
constexpr double kFirstAgreement = 0.8;
constexpr double kFirstTested = 8;
// How fast what drafts really take is learnt, and how far it can be from what was expected.
constexpr double kCostRate = 0.1;
constexpr double kMaxCostFactor = 4;
// Drafts that are made to see whether they would pay: how long, and how rarely.
constexpr int kTryTokens = 2;
constexpr int kFirstPause = 16;
constexpr int kMaxPause = 1024;

}  // namespace

std::optional<DraftPlan> DraftGate::check(const DraftPlan& plan, int n_context, double rival) {
  if (layers_ != plan.layers) {
    // Of new layers nobody knows anything of, what is known of those before them.
    const double likely = layers_ ? count_.chance() : kFirstAgreement;
    layers_ = plan.layers;
    count_ = {.n_agreed = kFirstTested * plan.agreement.value_or(likely), .n_tested = kFirstTested};
  }
  const double plain = best_draft(costs_, 0, 0, n_context, {.max = 0}).tokens_per_second;
  const DraftValue best = value(plan.layers, plan.max_tokens, n_context);
  if (best.tokens_per_second <= kMargin * std::max(plain, rival)) {
    // Where something else is better now, nothing is to be learnt about this.
    return rival > plain && best.tokens_per_second > kMargin * plain ? std::nullopt : explore(plan);
  }
  n_refusals_ = 0;
  pause_ = 0;
  DraftPlan shorter = plan;
  shorter.max_tokens = best.n_tokens;
  return shorter;
}

double DraftGate::expected_rate(int n_context) const {
  return layers_ ? value(*layers_, DraftLengths{}.max, n_context).tokens_per_second : 0;
}

DraftValue DraftGate::value(const LayerSet& layers, int max_tokens, int n_context) const {
  const double seconds = cost_factor_ * draft_.token_seconds(layers, n_context);
  return best_draft(costs_, count_.chance(), seconds, n_context,
                    {.min = 1, .max = std::min(max_tokens, DraftLengths{}.max)});
}

std::optional<DraftPlan> DraftGate::explore(const DraftPlan& plan) {
  if (pause_ == 0) pause_ = kFirstPause;
  if (++n_refusals_ <= pause_) return std::nullopt;
  n_refusals_ = 0;
  pause_ = std::min(2 * pause_, kMaxPause);
  DraftPlan shorter = plan;
  shorter.max_tokens = std::min(plan.max_tokens, kTryTokens);
  shorter.is_trial = true;
  return shorter;
}

void DraftGate::observe(const ChainOutcome& outcome) {
  count_.observe(outcome);
}

void DraftGate::observe_cost(const DraftPlan& plan, int n_context, int n_tokens, double seconds) {
  const double expected = n_tokens * draft_.token_seconds(plan.layers, n_context);
  if (expected <= 0) return;
  const double factor = std::clamp(seconds / expected, 1 / kMaxCostFactor, kMaxCostFactor);
  cost_factor_ += (1 - std::pow(1 - kCostRate, n_tokens)) * (factor - cost_factor_);
}

// With layers left out, further rows cost about the same share as with all of them.
int DraftGate::n_ahead(std::span<const double> chances, int n_context) const {
  return best_rows(*draft_.curve, chances, n_context).n_tokens;
}

}  // namespace forerun
