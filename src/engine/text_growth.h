// Lets texts grow by what a pass says.
//
// What was read is committed to the cache, tokens are drawn and drafts verified, and whoever
// drafts for the request learns what became of it.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "engine/active_request.h"
#include "engine/pass_rows.h"
#include "model/executor.h"
#include "model/final_norm.h"
#include "sampling/logprobs.h"
#include "sampling/sampler.h"
#include "verify/verify.h"

namespace forerun {

class TextGrowth {
 public:
  // Both outlive it.
  TextGrowth(Executor& executor, const PassRows& rows)
      : executor_(executor),
        rows_(rows),
        final_norm_(executor.model().has_blocks() ? std::optional<FinalNorm>(executor.model())
                                                  : std::nullopt) {}

  // The pass is done, in so many seconds. Verifies the drafts of all these, side by side.
  void begin(const PassResult& result, double seconds,
             std::span<const std::unique_ptr<ActiveRequest>> all);
  // For each request that had rows of it: why its answer ends here, if it does.
  std::optional<StopReason> grow(ActiveRequest& active);

  // Tokens that the pass gave so far to answers that had begun.
  int64_t n_given() const { return n_given_; }

  // Telling drafters what became of their drafts took so long, since it was asked last.
  double take_draft_seconds();

 private:
  void verify_all(std::span<const std::unique_ptr<ActiveRequest>> all);
  void verify_one(ActiveRequest& active, SamplerScratch& scratch) const;
  std::optional<StopReason> after_unread(ActiveRequest& active);
  std::optional<StopReason> after_tree(ActiveRequest& active);
  // The vectors of what was read, where they are wanted.
  void add_embedding(ActiveRequest& active);
  void count(ActiveRequest& active);
  // Passes on what was learnt; a drafter that fails is one no more.
  void tell(ActiveRequest& active, std::span<const TokenId> grown);

  Executor& executor_;
  const PassRows& rows_;
  std::optional<FinalNorm> final_norm_;  // of models whose states can be seen
  const PassResult* result_ = nullptr;
  double seconds_ = 0;
  double draft_seconds_ = 0;
  int64_t n_given_ = 0;

  // Reused from pass to pass.
  std::vector<NodeId> path_;
  SamplerScratch sampler_scratch_;
  std::vector<ActiveRequest*> verified_;
  std::vector<SamplerScratch> thread_scratch_;
  LogprobScratch logprob_scratch_;
  std::vector<float> normed_;
};

}  // namespace forerun
