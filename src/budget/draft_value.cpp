#include "budget/draft_value.h"

namespace forerun {

double draft_seconds(const Calibration& costs, const LayerSet& layers, int n_context) {
  int n_attention = 0;
  for (int layer = 0; layer < layers.n_layers(); ++layer) {
    n_attention += layers.runs(attention_block(layer)) ? 1 : 0;
  }
  return costs.blocks.of(layers) + costs.curve.attention(1, n_context) * n_attention / layers.n_layers();
}

DraftValue best_draft(const Calibration& costs, double agreement, double draft_seconds, int n_context,
                      const DraftLengths& lengths) {
  DraftValue best;
  double expected = 1;
  double chance = 1;
  for (int n = 0; n <= lengths.max; ++n) {
    const double seconds =
        n * draft_seconds + costs.curve.rows(n + 1) + costs.curve.attention(n + 1, n_context);
    const double rate = expected / seconds;
    const double margin = best.n_tokens == 0 && n > 0 ? lengths.margin : 1;
    if (n >= lengths.min && rate > margin * best.tokens_per_second)
      best = {.n_tokens = n, .tokens_per_second = rate};
    chance *= agreement;
    expected += chance;
  }
  return best;
}

}  // namespace forerun
