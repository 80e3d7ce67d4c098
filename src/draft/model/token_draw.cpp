#include "draft/model/token_draw.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace forerun {

void TokenDrawer::draw(std::span<TokenDraw> draws, Device& device) {
  // What follows a grammar stays here: requests may share that.
  const auto follows_grammar = [](const TokenDraw& draw) { return draw.state->constraint() != nullptr; };
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

void TokenDrawer::draw_one(TokenDraw& draw, Scratch& scratch) {
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

}  // namespace forerun
