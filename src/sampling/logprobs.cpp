#include "sampling/logprobs.h"

#include <algorithm>

#include "core/check.h"
#include "sampling/ieee_math.h"

namespace forerun {

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, int n_top,
                             LogprobScratch& scratch) {
  CHECK(to_int(chosen) >= 0 && static_cast<size_t>(to_int(chosen)) < logits.size() && n_top >= 0);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float max = largest(logits);
  if (max == -kInf) return {{chosen, -kInf}, {}};
  if (max == kInf) {
    copy_clean(logits, scratch.logits);
    logits = scratch.logits;
    max = std::numeric_limits<float>::max();
  }
  const auto log_total = static_cast<float>(ieee::log(sum_exp(logits, max, 1.0f)));
  const auto entry = [&](TokenId token) {
    const float logit = clean(logits[static_cast<size_t>(to_int(token))]);
    return TokenLogprob{token, logit - max - log_total};
  };

  TokenLogprobs out{entry(chosen), {}};
  if (n_top == 0) return out;
  select_top(logits, static_cast<size_t>(n_top), scratch.selection, scratch.best);
  out.top.reserve(scratch.best.size());
  for (const ScoredToken& best : scratch.best) out.top.push_back(entry(best.token));
  return out;
}

TokenLogprobs drawn_logprobs(const Distribution& distribution, TokenId chosen, int n_top) {
  TokenLogprobs out{{chosen, distribution.logprob(chosen)}, {}};
  for (size_t i = 0; i < distribution.size(); ++i) {
    out.top.push_back({distribution.tokens[i], distribution.logprobs[i]});
  }
  const auto n = std::min(out.top.size(), static_cast<size_t>(n_top));
  const auto is_before = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
  };
  std::ranges::partial_sort(out.top, out.top.begin() + static_cast<std::ptrdiff_t>(n), is_before);
  out.top.resize(n);
  return out;
}

}  // namespace forerun
