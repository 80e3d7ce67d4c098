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
// Reading the text for such a draft may take this part of the time since the last one; for the
// first drafts of all, of what is left of the answer. Drafts are known after so many tokens.
constexpr double kStake = 0.05;
constexpr int kKnownTested = 16;

// All wait while each of them reads.
double reading_of_all(const DraftSituation& situation) {
  return situation.n_requests * situation.read_seconds;
}

// Tokens per second over what is left of the answer, if drafts alone bring `rate`.
double with_reading(double rate, const DraftSituation& situation) {
  return 1 / (1 / rate + reading_of_all(situation) / std::max(1.0, situation.n_left));
}

}  // namespace

std::optional<DraftPlan> DraftGate::check(const DraftPlan& plan, const DraftSituation& situation) {
  if (layers_ != plan.layers) {
    // Of new layers nobody knows anything of, what is known of those before them.
    const double likely = layers_ ? count_.chance() : kFirstAgreement;
    layers_ = plan.layers;
    count_ = {.n_agreed = kFirstTested * plan.agreement.value_or(likely), .n_tested = kFirstTested};
  }
  const double plain = 1 / plain_seconds(situation);
  const DraftValue best = value(plan.layers, plan.max_tokens, situation);
  const double needed = kMargin * std::max(plain, situation.rival);
  if (!dares(situation) || with_reading(best.tokens_per_second, situation) <= needed) {
    // Where something else is better now, or reading is not worth it any more, nothing is to be
    // learnt about the drafts.
    const bool is_known_to_pay = dares(situation) && best.tokens_per_second > kMargin * plain;
    return is_known_to_pay ? std::nullopt : explore(plan, situation);
  }
  n_refusals_ = 0;
  refused_seconds_ = 0;
  pause_ = 0;
  DraftPlan shorter = plan;
  shorter.max_tokens = best.n_tokens;
  return shorter;
}

double DraftGate::expected_rate(const DraftSituation& situation) const {
  if (!layers_ || !dares(situation)) return 0;
  return with_reading(value(*layers_, DraftLengths{}.max, situation).tokens_per_second, situation);
}

double DraftGate::plain_seconds(const DraftSituation& situation) const {
  return costs_.curve.pass(1, situation.n_context, situation.n_requests);
}

bool DraftGate::dares(const DraftSituation& situation) const {
  if (n_tested_ >= kKnownTested || situation.read_seconds <= 0) return true;
  return reading_of_all(situation) <= kStake * situation.n_left * plain_seconds(situation);
}

DraftValue DraftGate::value(const LayerSet& layers, int max_tokens,
                            const DraftSituation& situation) const {
  const int n_context = situation.n_context;
  const double seconds = cost_factor_ * draft_.token_seconds(layers, n_context, situation.n_requests);
  return best_draft(costs_, count_.chance(), seconds, n_context,
                    {.min = 1, .max = std::min(max_tokens, DraftLengths{}.max)}, situation.n_requests);
}

std::optional<DraftPlan> DraftGate::explore(const DraftPlan& plan, const DraftSituation& situation) {
  if (pause_ == 0) pause_ = kFirstPause;
  refused_seconds_ += plain_seconds(situation) / situation.n_requests;
  if (++n_refusals_ <= pause_ || situation.read_seconds > kStake * refused_seconds_) return std::nullopt;
  n_refusals_ = 0;
  refused_seconds_ = 0;
  pause_ = std::min(2 * pause_, kMaxPause);
  DraftPlan shorter = plan;
  shorter.max_tokens = std::min(plan.max_tokens, kTryTokens);
  shorter.is_trial = true;
  return shorter;
}

void DraftGate::observe(const ChainOutcome& outcome) {
  count_.observe(outcome);
  n_tested_ += outcome.n_tested;
}

void DraftGate::observe_cost(const DraftPlan& plan, int n_context, int n_tokens, double seconds) {
  const double expected = n_tokens * draft_.token_seconds(plan.layers, n_context, 1);
  if (expected <= 0) return;
  const double factor = std::clamp(seconds / expected, 1 / kMaxCostFactor, kMaxCostFactor);
  cost_factor_ += (1 - std::pow(1 - kCostRate, n_tokens)) * (factor - cost_factor_);
}

// With layers left out, further rows cost about the same share as with all of them.
int DraftGate::n_ahead(std::span<const double> chances, int n_context, int n_requests) const {
  return best_rows(*draft_.curve, chances, n_context, n_requests).n_tokens;
}

}  // namespace forerun
