// Draws the tokens that models' drafts go on with, for several requests at once.
//
// From a large vocabulary that takes longer than the pass of a small model, so threads that wait for
// the next pass share it.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"
#include "model/device.h"
#include "sampling/sampler.h"

namespace forerun {

// A token to be drawn, and what was.
struct TokenDraw {
  const Sampler* sampler = nullptr;
  const SamplerState* state = nullptr;
  Position position{};
  bool keeps_distribution = false;

  // Before, what a pass gave; then of the sampler's vocabulary.
  LogitsView logits = {};
  std::optional<TokenId> token = {};        // nullopt: there is none that the model would put there
  SoftmaxSums sums = {};                    // of the logits
  double probability = 0;                   // of the token, before temperature
  std::vector<ScoredToken> likeliest = {};  // where it is below kSureDraw
  Distribution distribution = {};           // where it is kept
  std::vector<float> fitted = {};           // logits of a smaller vocabulary
};

// Nobody asks what else could follow where a token is surer than this; else how many are asked for.
constexpr double kSureDraw = 0.95;
constexpr size_t kLikeliestTokens = 10;

// Not thread-safe.
class TokenDrawer {
 public:
  // Between computations of the device.
  void draw(std::span<TokenDraw> draws, Device& device) {
    // What follows a grammar stays here: requests may share that.
    const auto follows_grammar = [](const TokenDraw& draw) {
      return draw.state->constraint() != nullptr;
    };
    const bool is_shared = std::ranges::count_if(draws, std::not_fn(follows_grammar)) > 1;
    for (TokenDraw& draw : draws) {
      if (!is_shared || follows_grammar(draw)) draw_one(draw, scratch_.front());
    }
    if (!is_shared) return;
    scratch_.resize(static_cast<size_t>(device.n_threads()));
    device.share_out(draws.size(), [&](int thread, size_t i) {
      if (!follows_grammar(draws[i])) draw_one(draws[i], scratch_[static_cast<size_t>(thread)]);
    });
  }

 private:
  struct Scratch {
    SamplerScratch sampler;
    SelectionScratch selection;
  };

  static void draw_one(TokenDraw& draw, Scratch& scratch) {
    const Sampler& sampler = *draw.sampler;
    draw.token.reset();
    draw.likeliest.clear();
    try {
      draw.logits = draw.logits.fitted(static_cast<size_t>(sampler.n_vocab()), draw.fitted);
      const Distribution& distribution = sampler.distribution(draw.logits, *draw.state, scratch.sampler);
      const TokenId token = sampler.draw(distribution, draw.position);
      if (draw.keeps_distribution) draw.distribution = distribution;
      draw.sums = draw.logits.sums();
      draw.probability = draw.sums.probability(draw.logits.logit(token));
      if (draw.probability < kSureDraw)
        draw.logits.top(kLikeliestTokens, scratch.selection, draw.likeliest);
      draw.token = token;
    } catch (const Error&) {
      // The request does without.
    }
  }

  std::vector<Scratch> scratch_ = std::vector<Scratch>(1);  // per thread
};

}  // namespace forerun
