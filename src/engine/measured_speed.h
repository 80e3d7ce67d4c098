// What drafting with a set of layers is worth, by really drafting with it: Draft & Verify's
// objective, tokens per second.
//
// Answers the texts' prompts again, one after the other, with the model drafting for itself, and
// compares with plain decoding of the same, measured in the same process and again now and then:
// machines drift. Prompts stay in the cache, so only their answers take time.
//
// Noisy, and some hundred times as slow as ExpectedSpeed (layers/layer_objective.h), whose
// model of what a pass costs it does not need.
#pragma once

#include <functional>
#include <vector>

#include "draft/self.h"
#include "engine/stepper.h"
#include "layers/layer_objective.h"

namespace forerun {

class MeasuredSpeed final : public LayerObjective {
 public:
  // Both outlive it. The executor's cache has n_cells() free cells or more, which are free again
  // afterwards. Throws Error when no text has an answer.
  MeasuredSpeed(Executor& executor, const Vocabulary& vocabulary, const ChainOptions& draft,
                std::vector<SearchText> texts);
  ~MeasuredSpeed() override;

  // How many cells the texts take.
  static int n_cells(const std::vector<SearchText>& texts);

  double speedup(const LayerSet& layers) override;
  bool is_noisy() const override { return true; }

 private:
  // Tokens per second of all answers.
  double rate(const Speculation& speculation);
  double answer(const SearchText& text, int n_tokens, const Speculation& speculation);

  Executor& executor_;
  ChainOptions draft_;
  std::vector<SearchText> texts_;
  Stepper stepper_;
  double plain_rate_ = 0;
  int n_since_plain_ = 0;  // candidates
};

}  // namespace forerun
