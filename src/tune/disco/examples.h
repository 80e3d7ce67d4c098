// What a classifier learns from: tokens as a drafter would draft them behind a text of the target's
// own, and the chance that the target takes each.
//
// As DISCO's authors collect them: at every place of an answer the drafter proposes one token
// behind what the target said so far. Greedily it is taken or not; when sampling, the chance is the
// exact one of speculative sampling, the probability that both distributions share.
#pragma once

#include <span>
#include <vector>

#include "model/executor.h"
#include "model/layer_set.h"
#include "sampling/sampler.h"
#include "stopping/disco.h"
#include "tune/answers.h"

namespace forerun {

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
  ExampleCollector(Executor& target, const ExampleDrafter& drafter);

  // Of a text that this sampler chose the tokens of, from the second of the answer on: the first
  // comes with the prompt. Throws Error where it does not fit into the cache.
  void collect(const SearchText& text, const Sampler& sampler, std::vector<DiscoExample>& examples);

 private:
  // A pass over `tokens` behind what is committed, all with their logits.
  const PassResult& forward(Executor& executor, SequenceId sequence, std::span<const TokenId> tokens,
                            const LayerSet& layers, std::vector<NodeId>& path);

  Executor& target_;
  ExampleDrafter drafter_;
  Pass pass_;
  DiscoView view_;
  std::vector<float> fitted_;
  SamplerScratch scratch_;
};

}  // namespace forerun
