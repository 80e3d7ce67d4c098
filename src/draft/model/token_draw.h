// Draws the tokens that models' drafts go on with, for several requests at once.
//
// From a large vocabulary that takes longer than the pass of a small model, so threads that wait for
// the next pass share it.
#pragma once

#include <optional>
#include <span>
#include <vector>

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
  void draw(std::span<TokenDraw> draws, Device& device);

 private:
  struct Scratch {
    SamplerScratch sampler;
    SelectionScratch selection;
  };
  static void draw_one(TokenDraw& draw, Scratch& scratch);

  std::vector<Scratch> scratch_ = std::vector<Scratch>(1);  // per thread
};

}  // namespace forerun
