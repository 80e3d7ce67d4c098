// What drafting with some of the model's layers is worth, and how far to draft, as published methods
// reckon it: every drafted token agrees with the model equally often.
#pragma once

#include <span>

#include "cost/pass_costs.h"

namespace forerun {

struct DraftValue {
  int n_tokens = 0;  // to draft: 0 if plain decoding is faster
  double tokens_per_second = 0;
};

// The best length of a draft whose tokens each take `draft_seconds` and agree with the model
// with chance `agreement` where those before them do, and the tokens per second that come of
// it: of n drafted tokens (1 - a^(n + 1)) / (1 - a) become text, the model's own next one
// included, for the time of drafting them and of a pass with n + 1 rows.
struct DraftLengths {
  int min = 0;  // 0: plain decoding is a choice
  int max = 25;
  double margin = 1;  // how many times as good as plain decoding a draft must be
};
DraftValue best_draft(const PassCosts& costs, double agreement, double draft_seconds, int n_context,
                      const DraftLengths& lengths = {});

// How many of the likeliest tokens of a draft to read in one pass behind the last token of the
// text. `chances`: that the text takes them, the best first.
int best_rows(const PassCosts& costs, std::span<const double> chances, int n_context,
              int n_requests = 1);

// How a set of layers did on some text.
struct SeenAgreement {
  double agreement = 0;  // the share of tokens that were the model's own
  int n_seen = 0;        // of so many
  int n_context = 0;     // tokens before them
};
// How many times as fast as plain decoding text comes with drafts of these layers, at their best
// length. At least one token is drafted, so what does not pay is below 1, the lower the worse.
double draft_speedup(const PassCosts& costs, const LayerSet& layers, const SeenAgreement& seen);

}  // namespace forerun
