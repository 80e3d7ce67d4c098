// What enters and leaves the model's blocks for some tokens of a text, and what single blocks
// make of other states: what searches through the model, block by block, work on.
//
// A branch is the states of all those tokens at one place of the model, a version of them that
// came of leaving blocks out. Its tokens attend to what the full model has committed before
// them and to each other in the branch's own version.
#pragma once

#include <span>
#include <vector>

#include "core/error.h"
#include "layers/agreement.h"
#include "model/executor.h"
#include "request/request_view.h"

namespace forerun {

class BlockStates {
 public:
  virtual ~BlockStates() = default;

  virtual int n_layers() const = 0;
  virtual size_t n_tokens() const = 0;
  virtual size_t n_embd() const = 0;
  size_t branch_size() const { return n_tokens() * n_embd(); }  // floats

  // What enters block `boundary` of the full model, or leaves the last one: one branch.
  virtual std::span<const float> full(int boundary) const = 0;
  // `states` enter the block, and become what leaves it: those of any number of branches, one
  // after the other.
  virtual void run(BlockId block, std::span<float> states) = 0;
  // What the model says behind each token of branches that leave the last block.
  struct Said {
    bool is_text;        // what the text has there
    double probability;  // of what it says
  };
  virtual std::vector<Said> say(std::span<const float> states) = 0;
  // For each of these branches the share of the tokens behind which it says what the text has.
  std::vector<double> agreement(std::span<const float> states);
};

// The mean over the tokens of the cosine between both branches' states.
double mean_cosine(std::span<const float> a, std::span<const float> b, size_t n_embd);

// Runs `work` on states of a text, or as much of it as the cache has room for.
template <typename Work>
void in_free_cells(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kContextFull) throw;
  }
}

// Of a running request. Uses scratch cells during calls only; the text may grow between them.
class TextBlockStates final : public BlockStates {
 public:
  // Of the tokens before the `n` that end at place `end` of the text, as an AgreementWindow has
  // them. Runs a pass of the full model. The executor and the request outlive it. Throws
  // Error{kContextFull} here and in calls when the cache has no room for one branch.
  TextBlockStates(Executor& executor, const RequestView& request, size_t end, size_t n);

  int n_layers() const override { return executor_.model().config().n_layers; }
  size_t n_tokens() const override { return window_.n; }
  size_t n_embd() const override { return static_cast<size_t>(executor_.model().config().n_embd); }
  std::span<const float> full(int boundary) const override;
  void run(BlockId block, std::span<float> states) override;
  std::vector<Said> say(std::span<const float> states) override;

 private:
  // Puts rows for as many of these branches as there is room for into the pass, which ask for what it
  // has: states, or logits.
  size_t fill_rows(size_t n_branches);
  // Has branches enter at `boundary` and calls take(result, row, i) for row i of them all.
  template <typename Take>
  void run_from(int boundary, std::span<const float> states, Take take);

  Executor& executor_;
  AgreementWindow window_;
  std::vector<float> full_;  // boundaries x tokens x n_embd
  Pass pass_;
  SamplerScratch scratch_;
};

}  // namespace forerun
