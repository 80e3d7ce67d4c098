// What drafting with a set of layers is worth: what a search for layers looks for.
#pragma once

#include <memory>
#include <vector>

#include "draft/model/layer_skipping.h"
#include "layers/agreement.h"
#include "layers/block_states.h"
#include "tune/answer_timer.h"

namespace forerun {

// Not thread-safe.
class LayerObjective {
 public:
  virtual ~LayerObjective() = default;
  // How many times as fast as plain decoding. Below 1 where drafting does not pay, the lower the
  // worse: a search needs to see the way up.
  virtual double speedup(const LayerSet& layers) = 0;
  // Whether the same set may score otherwise when asked again.
  virtual bool is_noisy() const { return false; }
  // The sets that KnapSpec's dynamic programme gives on what this is about, all of its branches
  // kept, `cap` the share of the weight that may be left out. Empty: it knows no states.
  virtual std::vector<LayerSet> knapsack_sets(double /*cap*/) { return {}; }
  // A few good sets that are found in little time, for searches to begin with. May be empty.
  virtual std::vector<LayerSet> quick_sets() { return {}; }
};

// What is to be expected: how often a drafted token is the model's own on given texts, against
// what passes cost by calibration. The same tokens for every candidate, so there is no noise.
//
// The texts lie in the executor's cache while this lives; the executor and the costs outlive it.
class ExpectedSpeed final : public LayerObjective {
 public:
  // Throws Error when no text has an answer, and when the cache has no room for the texts and a
  // pass over their answers.
  ExpectedSpeed(Executor& executor, const PassCosts& costs, std::vector<SearchText> texts);
  ~ExpectedSpeed() override;
  ExpectedSpeed(const ExpectedSpeed&) = delete;
  ExpectedSpeed& operator=(const ExpectedSpeed&) = delete;

  double speedup(const LayerSet& layers) override;
  std::vector<LayerSet> knapsack_sets(double cap) override;
  std::vector<LayerSet> quick_sets() override;
  // Of the last tokens of an answer, at most `n_tokens` of them.
  std::unique_ptr<BlockStates> states(size_t n_tokens);
  // The share of the answers' tokens that the model with these layers would have put there. As
  // in a draft, it reads the full model's keys and values but for those of the last few tokens.
  double agreement(const LayerSet& layers);
  // Costs are those behind so many tokens from now on, whatever the texts have.
  void cost_behind(int n_context) { n_context_ = n_context; }
  // How many tokens are compared.
  int n_tokens() const { return n_tokens_; }

 private:
  class Text;

  Executor& executor_;
  const PassCosts& costs_;
  std::vector<std::unique_ptr<Text>> texts_;
  std::vector<AgreementWindow> windows_;
  int n_tokens_ = 0;
  int n_context_ = 0;  // of a compared token, on average
};

// What really comes of drafting with it: Draft & Verify's objective, tokens per second.
//
// Answers the texts' prompts again (answer_timer.h) with the model drafting for itself, and
// compares with plain decoding of the same, measured in the same process and again now and then:
// machines drift.
//
// Noisy, and some hundred times as slow as ExpectedSpeed, whose model of what a pass costs it does not
// need.
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
