#include "budget/draft_value.h"

#include "budget/draft_cost.h"

namespace forerun {

double attention_seconds(const Calibration& costs, int n_layers, int n_context) {
  return costs.blocks.attention + costs.curve.attention(1, n_context) / n_layers;
}

double draft_seconds(const Calibration& costs, const LayerSet& layers, int n_context) {
  int n_attention = 0;
  for (int layer = 0; layer < layers.n_layers(); ++layer) {
    n_attention += layers.runs(attention_block(layer)) ? 1 : 0;
  }
  return costs.blocks.of(layers) + costs.curve.attention(1, n_context) * n_attention / layers.n_layers();
}

DraftCost self_draft_cost(const Calibration& costs) {
  return {.token_seconds =
              [&costs](const LayerSet& layers, int n_context, int n_requests) {
                // With layers left out, rows cost about the same share as with all of them.
                const CostCurve& curve = costs.curve;
                return draft_seconds(costs, layers, n_context) * curve.pass(1, n_context, n_requests) /
                       curve.pass(1, n_context);
              },
          .curve = &costs.curve};
}

DraftValue best_draft(const Calibration& costs, double agreement, double draft_seconds, int n_context,
                      const DraftLengths& lengths, int n_requests) {
  DraftValue best;
  double expected = 1;
  double chance = 1;
  for (int n = 0; n <= lengths.max; ++n) {
    const double seconds = n * draft_seconds + costs.curve.pass(n + 1, n_context, n_requests);
    const double rate = expected / seconds;
    const double margin = best.n_tokens == 0 && n > 0 ? lengths.margin : 1;
    if (n >= lengths.min && rate > margin * best.tokens_per_second)
      best = {.n_tokens = n, .tokens_per_second = rate};
    chance *= agreement;
    expected += chance;
  }
  return best;
}

DraftValue best_rows(const CostCurve& curve, std::span<const double> chances, int n_context,
                     int n_requests) {
  DraftValue best;
  double expected = 1;
  for (size_t n = 0; n <= chances.size(); ++n) {
    const auto n_tokens = static_cast<int>(n);
    const double rate = expected / curve.pass(n_tokens + 1, n_context, n_requests);
    if (rate > best.tokens_per_second) best = {.n_tokens = n_tokens, .tokens_per_second = rate};
    if (n < chances.size()) expected += chances[n];
  }
  return best;
}

double draft_speedup(const Calibration& costs, const LayerSet& layers, const SeenAgreement& seen) {
  const double seconds = draft_seconds(costs, layers, seen.n_context);
  // A few tokens tell little: as if one more had been seen to agree and one not to.
  const double chance = (seen.agreement * seen.n_seen + 1) / (seen.n_seen + 2);
  const double plain = best_draft(costs, 0, seconds, seen.n_context, {.max = 0}).tokens_per_second;
  return best_draft(costs, chance, seconds, seen.n_context, {.min = 1}).tokens_per_second / plain;
}

}  // namespace forerun
