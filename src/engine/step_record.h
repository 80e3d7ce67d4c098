// What steps take and what comes of them: told to the costs that planners plan by, and to whoever asks
// for statistics.
//
// statistics() may be called from any thread, the rest from the engine's.
#pragma once

#include <forerun/generation.h>
#include <forerun/statistics.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "cost/pass_costs.h"
#include "engine/active_request.h"
#include "model/kv_cells.h"

namespace forerun {

class StepRecord {
 public:
  // `costs` outlive it; nullptr: nobody wants to know.
  explicit StepRecord(PassCosts* costs) : costs_(costs) {}

  // How many rows of prompts, of so many that there is room for, a pass may have in that time beside
  // those that give tokens.
  int n_prompt_rows_within(double seconds, int room) const;

  // Drafts were looked for, or told what became of them.
  void add_draft_seconds(double seconds) { draft_seconds_ += seconds; }

  struct ComputedPass {
    int n_rows = 0;
    int n_tree_rows = 0;  // of these, of requests that decode
    int n_decoding = 0;   // such requests,
    int n_context = 0;    // tokens of their texts together,
    int n_longest = 0;    // and of the longest
    double seconds = 0;   // drawing tokens included: more rows take more of it
    bool was_usual = true;
  };
  void observe(const ComputedPass& pass);
  // All texts have grown by what that pass says, by so many tokens.
  void count_saved(int64_t n_tokens);

  // Counts a request that ends among those that are over, once.
  void count_past(ActiveRequest& active, const Generation& result);
  void count_suspended();
  // The requests that there are now.
  void update(std::span<const std::unique_ptr<ActiveRequest>> active, const KvCells& cells);

  // As of the last update.
  EngineStatistics statistics() const;

 private:
  PassCosts* costs_;
  double draft_seconds_ = 0;  // for a pass, and for what it taught
  double pass_seconds_ = 0;   // of the last
  // Whether what drafts saved can be told of it: prompts take their own time.
  bool counts_saved_ = false;
  // What each token would have cost without drafts, if it has some.
  std::optional<double> plain_seconds_;
  double prompt_row_seconds_ = 0;  // of late; 0: not known
  // Of requests that are over.
  SpeculationStatistics past_speculation_;
  int64_t n_past_predicted_ = 0;

  mutable std::mutex mutex_;
  EngineStatistics statistics_;
};

}  // namespace forerun
