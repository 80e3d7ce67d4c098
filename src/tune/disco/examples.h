// What a classifier learns from: tokens as a drafter would draft them behind a text of the target's
// own, and the chance that the target takes each.
//
// As DISCO's authors collect them: at every place of an answer the drafter proposes one token
// behind what the target said so far. Greedily it is taken or not; when sampling, the chance is the
// exact one, which depends on how drafts are accepted.
#pragma once

#include <span>
#include <vector>

#include "model/executor.h"
#include "model/layer_set.h"
#include "sampling/sampler.h"
#include "stopping/disco.h"
#include "tune/answers.h"
#include "verify/verify.h"

namespace forerun {

// How likely a token is taken that a drafter draws from `draft`, where the target's distribution is
// `target`: the mean over all tokens it may draw. examples.cpp says why.
double chance_taken(AcceptRule rule, const Distribution& draft, const Distribution& target);

struct DiscoExample {
  DiscoFeatures features{};
  float taken = 0;  // the chance of it; greedily 0 or 1
};

// Who drafts: a model of its own, or the target with layers left out.
struct ExampleDrafter {
  Executor* executor;  // the target's own where that drafts
  LayerSet layers;
};

// The caches of both have room for the longest text. Not thread-safe.
class ExampleCollector {
 public:
  // All outlive it.
  ExampleCollector(Executor& target, const ExampleDrafter& drafter,
                   AcceptRule rule = AcceptRule::kMatch);

  // Of a text that this sampler chose the tokens of, from the second of the answer on: the first
  // comes with the prompt. Throws Error where it does not fit into the cache.
  void collect(const SearchText& text, const Sampler& sampler, std::vector<DiscoExample>& examples);

 private:
  // A pass over `tokens` behind what is committed, all with their logits.
  const PassResult& forward(Executor& executor, SequenceId sequence, std::span<const TokenId> tokens,
                            const LayerSet& layers, std::vector<NodeId>& path);

  Executor& target_;
  ExampleDrafter drafter_;
  AcceptRule rule_;
  Pass pass_;
  DiscoView view_;
  std::vector<float> fitted_;
  SamplerScratch scratch_;
};

}  // namespace forerun
