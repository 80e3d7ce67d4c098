#include "cost/draft_value.h"

namespace forerun {

DraftValue best_draft(const PassCosts& costs, double agreement, double draft_seconds, int n_context,
                      const DraftLengths& lengths) {
  DraftValue best;
  double expected = 1;
  double chance = 1;
  for (int n = 0; n <= lengths.max; ++n) {
    const double rate = expected / (n * draft_seconds + costs.pass(n + 1, n_context));
    const double margin = best.n_tokens == 0 && n > 0 ? lengths.margin : 1;
    if (n >= lengths.min && rate > margin * best.tokens_per_second)
      best = {.n_tokens = n, .tokens_per_second = rate};
    chance *= agreement;
    expected += chance;
  }
  return best;
}

int best_rows(const PassCosts& costs, std::span<const double> chances, int n_context, int n_requests) {
  int best = 0;
  double best_rate = 0;
  double expected = 1;
  for (size_t n = 0; n <= chances.size(); ++n) {
    const auto n_tokens = static_cast<int>(n);
    const double rate = expected / costs.pass(n_tokens + 1, n_context, n_requests);
    if (rate > best_rate) best = n_tokens;
    best_rate = std::max(best_rate, rate);
    if (n < chances.size()) expected += chances[n];
  }
  return best;
}

double draft_speedup(const PassCosts& costs, const LayerSet& layers, const SeenAgreement& seen) {
  const double seconds = costs.pass_with(layers, seen.n_context);
  // A few tokens tell little: as if one more had been seen to agree and one not to.
  const double chance = (seen.agreement * seen.n_seen + 1) / (seen.n_seen + 2);
  const double plain = 1 / costs.pass(1, seen.n_context);
  return best_draft(costs, chance, seconds, seen.n_context, {.min = 1}).tokens_per_second / plain;
}

}  // namespace forerun
