// What drafting with some of the model's layers is worth.
#pragma once

#include <span>

#include "budget/calibration.h"
#include "model/layer_set.h"

namespace forerun {

// Seconds of one row in one layer's attention behind `n_context` tokens.
double attention_seconds(const Calibration& costs, int n_layers, int n_context);

// Seconds of one drafted token with these layers behind `n_context` tokens.
double draft_seconds(const Calibration& costs, const LayerSet& layers, int n_context);

struct DraftValue {
  int n_tokens = 0;  // to draft: 0 if plain decoding is faster
  double tokens_per_second = 0;
};

// The best length of a draft whose tokens each take `draft_seconds` and agree with the model
// with chance `agreement` where those before them do, and the tokens per second that come of
// it: of n drafted tokens (1 - a^(n + 1)) / (1 - a) become text, the model's own next one
// included, for the time of drafting them and of a pass with n + 1 rows. Several requests in that
// pass are thought to draft alike; the rate is that of each.
struct DraftLengths {
  int min = 0;  // 0: plain decoding is a choice
  int max = 25;
  double margin = 1;  // how many times as good as plain decoding a draft must be
};
DraftValue best_draft(const Calibration& costs, double agreement, double draft_seconds, int n_context,
                      const DraftLengths& lengths = {}, int n_requests = 1);

// How many of the likeliest tokens of a draft to read in one pass behind the last token of the
// text, and the tokens per second that come of it. `chances`: that the text takes them, the best
// first.
DraftValue best_rows(const CostCurve& curve, std::span<const double> chances, int n_context,
                     int n_requests = 1);

// How a set of layers did on some text.
struct SeenAgreement {
  double agreement = 0;  // the share of tokens that were the model's own
  int n_seen = 0;        // of so many
  int n_context = 0;     // tokens before them
};
// How many times as fast as plain decoding text comes with drafts of these layers, at their best
// length. At least one token is drafted, so what does not pay is below 1, the lower the worse.
double draft_speedup(const Calibration& costs, const LayerSet& layers, const SeenAgreement& seen);

}  // namespace forerun
