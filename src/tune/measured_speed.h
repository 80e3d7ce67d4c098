// What drafting with a set of layers is worth, by really drafting with it: Draft & Verify's
// objective, tokens per second.
//
// Answers the texts' prompts again (answer_timer.h) with the model drafting for itself, and
// compares with plain decoding of the same, measured in the same process and again now and then:
// machines drift.
//
// Noisy, and some hundred times as slow as ExpectedSpeed (layer_objective.h), whose
// model of what a pass costs it does not need.
#pragma once

#include <vector>

#include "draft/model/layer_skipping.h"
#include "tune/answer_timer.h"
#include "tune/layer_objective.h"

namespace forerun {

class MeasuredSpeed final : public LayerObjective {
 public:
  // The executor, its costs and the vocabulary outlive it. The executor's cache has
  // AnswerTimer::n_cells() free cells or more, which are free again afterwards. Throws Error when no
  // text has an answer.
  MeasuredSpeed(Executor& executor, PassCosts& costs, const Vocabulary& vocabulary,
                const ChainOptions& draft, std::vector<SearchText> texts);

  double speedup(const LayerSet& layers) override;
  bool is_noisy() const override { return true; }

 private:
  // Tokens per second of all answers.
  double rate(const Speculation& speculation);

  Executor& executor_;
  PassCosts& costs_;
  ChainOptions draft_;
  AnswerTimer timer_;
  double plain_rate_ = 0;
  int n_since_plain_ = 0;  // candidates
};

}  // namespace forerun
