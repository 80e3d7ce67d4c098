// From logits to a token: the final distribution, and the draw from it.
//
// The order is that of llama.cpp's default chain (samplers it has by default off and
// we do not have left out):
//
//   logit bias -> penalties -> top-k -> top-p -> min-p -> temperature -> draw
//
// so truncation looks at the model's own probabilities and temperature reshapes what
// it left. Differences to llama.cpp: of equal logits the lowest token ids are kept
// (there the order depends on the sort); repeat_last_n -1 means the whole context;
// NaN logits count as -infinity; and the draw.
//
// A state's constraint forbids tokens before all of these. Asking it for all tokens takes long, so
// sample() draws without it first, and again with it where it forbids what was drawn, as llama.cpp does.
//
// The draw is the Gumbel-max trick (Gumbel 1954; Maddison, Tarlow, Minka: "A* Sampling",
// 2014) with noise keyed by (seed, position, token): the token with the largest
// log-probability + noise has exactly the distribution's probabilities, and depends on
// nothing but logits, options, seed and position. Two samplers whose distributions are
// alike mostly draw the same token, which is why a sampling drafter uses this draw too.
//
// Where a view has the best logits alone (logits_view.h), these decide as long as they are sure to be
// what truncation leaves of all: what lies behind the last of them is no better than it, and neither
// bias nor penalties raise a logit. The draw is the one from all logits then, bit for bit; else all are
// asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "sampling/keyed_noise.h"
#include "sampling/logits_view.h"
#include "sampling/options.h"
#include "sampling/sampler_state.h"
#include "sampling/vocab_ops.h"

namespace forerun {

// Candidate i is tokens[i] with log-probability logprobs[i]. Each token occurs once, in
// no particular order, with a probability above 0; the probabilities sum to 1.
struct Distribution {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;

  size_t size() const { return tokens.size(); }

  // -infinity for a token that is no candidate. Searches.
  float logprob(TokenId token) const;
};

// Buffers of one thread's sampling, grown on first use and then reused, so that steady
// sampling allocates nothing. One serves any number of samplers, one at a time.
struct SamplerScratch {
  std::vector<float> allowed;     // of tokens that a constraint allows
  std::vector<float> logits;      // of all tokens, after bias and penalties
  std::vector<int32_t> counts;    // per token of the vocabulary; 0 between calls
  std::vector<TokenId> seen;      // tokens with a count
  std::vector<ScoredToken> kept;  // after truncation
  SelectionScratch selection;
  Distribution distribution;
};

// The sampling of one request. Immutable after construction and safe to use from any
// thread, each with its own scratch.
class Sampler {
 public:
  // Throws Error{kInvalidArgument} if the options make no sense (validate()).
  Sampler(SamplingOptions options, int n_vocab);

  const SamplingOptions& options() const { return options_; }

  // The seed in use: the options', or the one taken from the operating system. It then
  // has 53 bits, so that it survives JSON readers that know only doubles.
  uint64_t seed() const { return seed_; }
  int n_vocab() const { return n_vocab_; }
  // Whether the best logits of a row decide, in all but rare cases; and behind this text.
  bool draws_from_best() const { return draws_from_best_; }
  bool draws_from_best(const SamplerState& state) const {
    return draws_from_best_ && state.constraint() == nullptr;
  }

  // The state after `text` (the prompt: penalties count it too). Empty and free of
  // cost when no penalty is on.
  SamplerState state_after(std::span<const TokenId> text) const;

  // The final distribution of the token after the state's text. It lies in `scratch`
  // and is valid until its next use; copy it to keep it. When greedy, the one most
  // probable token. Expects one logit per token of the vocabulary. Throws
  // Error{kInvalidArgument} when no token is left (all forbidden or NaN).
  const Distribution& distribution(const LogitsView& logits, const SamplerState& state,
                                   SamplerScratch& scratch) const;

  // The token at `position` (its own, not that of the token before). Does not depend
  // on the order of the candidates.
  TokenId draw(const Distribution& distribution, Position position) const;

  // draw(distribution(logits, state, scratch), position); of a state with a constraint see above.
  TokenId sample(const LogitsView& logits, const SamplerState& state, Position position,
                 SamplerScratch& scratch) const;

 private:
  const Distribution& distribution_of(const LogitsView& logits, const SamplerState& state,
                                      SamplerScratch& scratch) const;
  const Distribution& distribution_of_all(std::span<const float> logits, const SamplerState& state,
                                          SamplerScratch& scratch) const;
  // Makes scratch.kept what truncation leaves. false: the best logits do not say.
  bool keep_of_best(const LogitsView& logits, const SamplerState& state, SamplerScratch& scratch) const;
  void adjust_best(const SamplerState& state, SamplerScratch& scratch) const;
  std::span<const float> adjust(std::span<const float> logits, const SamplerState& state,
                                SamplerScratch& scratch) const;
  bool penalises(const SamplerState& state) const {
    return options_.has_penalties() && state.size() > 0;
  }
  void count_seen(const SamplerState& state, SamplerScratch& scratch) const;
  float penalised(float logit, int32_t count) const;
  void truncate(std::span<const float> logits, float max, SamplerScratch& scratch) const;
  void truncate_top_k(float max, std::vector<ScoredToken>& kept) const;
  bool decides_from_best() const;
  size_t n_lowered() const;
  size_t n_kept(std::span<const ScoredToken> sorted, const MassTarget& top_p) const;
  bool has_top_k() const { return options_.top_k > 0 && options_.top_k < n_vocab_; }
  float min_p_threshold(float max) const;

  SamplingOptions options_;
  int n_vocab_;
  uint64_t seed_;
  KeyedNoise noise_;
  double log_min_p_;  // -infinity when off
  bool draws_from_best_;
};

}  // namespace forerun
