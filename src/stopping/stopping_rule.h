// How far ahead to draft: the seam that every stopping rule implements.
//
// After each drafted token a StoppingRule says whether to draft another one; what was drafted so far
// is verified otherwise, that token included. It serves any drafter that drafts one token after the
// other: the model with layers left out, and a model of its own.
//
// It belongs to a drafting method and holds what requests share (a threshold that adapts), whose drafts
// grow side by side.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <span>

#include "core/ids.h"
#include "sampling/logits_view.h"

namespace forerun {

// A token, and what it was drawn from: the draft's own distribution, before temperature.
struct DraftedToken {
  LogitsView logits;
  SoftmaxSums sums;  // of them
  // The likeliest tokens, ten of them; none where the token is sure (draft/model/token_draw.h).
  std::span<const ScoredToken> likeliest = {};
  TokenId token;
  double probability;
  std::span<const double> probabilities = {};  // of its draft's tokens, this one the last
  int depth;                                   // 1: the first of its draft
  int n_answer;       // tokens of the answer before this one, those of the draft included
  int n_sharing = 1;  // drafts that the pass behind it is for, if all go on
  // What the model puts there, where the caller knew the answer beforehand: in benchmarks.
  std::optional<TokenId> known = std::nullopt;
};

// What became of a drafted chain.
struct ChainOutcome {
  int n_tested = 0;  // tokens compared with the model's own: up to the first that differs
  int n_agreed = 0;
  int n_drafted = 0;
  bool is_longest = false;                     // no draft has more tokens
  std::span<const double> probabilities = {};  // of all its tokens
};

class StoppingRule {
 public:
  virtual ~StoppingRule() = default;
  virtual bool goes_on(const DraftedToken& token) = 0;
  // Of a request's latest draft.
  virtual void observe(const ChainOutcome& /*outcome*/) {}
  // The most tokens that it drafts, where it has a limit of its own: in place of the method's.
  virtual std::optional<int> longest() const { return std::nullopt; }
};

}  // namespace forerun
