// What a drafter that uses the model sees of its request while that runs.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "core/ids.h"
#include "request/prompt_state.h"
#include "sampling/sampler.h"

namespace forerun {

class RequestView {
 public:
  virtual ~RequestView() = default;

  // The prompt and the answer so far. When drafting begins, all but its last token are
  // committed in the cache.
  virtual std::span<const TokenId> text() const = 0;
  int n_context() const { return static_cast<int>(text().size()); }
  virtual size_t n_prompt() const = 0;  // of its tokens
  // Tokens that the answer may still get.
  virtual int n_left() const { return std::numeric_limits<int>::max(); }
  double n_answer() const { return static_cast<double>(text().size() - n_prompt()); }  // that it has
  // How many more it is likely to get: as many as answers usually have, or as it has already if that is
  // more, since the longer one is, the longer it is likely to go on; and no more than it may get.
  double n_expected(double usual) const {
    return std::min<double>(n_left(), std::max(usual, n_answer()));
  }
  // Whether the answer is over where the model says this token, which is no part of it.
  virtual bool ends_answer(TokenId /*token*/) const { return false; }
  virtual SequenceId sequence() const = 0;
  // All of the answer, where the caller knew it beforehand (BenchmarkRecord::known_answer); else empty.
  virtual std::span<const TokenId> known_answer() const { return {}; }

  // What the caller expects it to be, or nearly; empty: nothing.
  virtual std::span<const TokenId> prediction() const { return {}; }

  virtual const Sampler& sampler() const = 0;
  virtual const SamplerState& state() const = 0;  // after the text

  // Whether the verifier compares the model's distributions with those that drafts were
  // drawn from: then these belong into the tree, and draws must be the drafter's own.
  virtual bool compares_distributions() const { return false; }

  // The state of the prompt's rows that were read for this request, the last one included.
  // nullptr: it was not asked for (Drafter::wants_prompt_state).
  virtual const PromptState* prompt_state() const { return nullptr; }
};

}  // namespace forerun
