// Lets planners fill the trees of a pass. Drafts are a help and no more: where they fail, the
// pass does without, and a request whose drafts keep failing goes on without any.
//
// Not thread-safe.
#pragma once

#include <span>
#include <vector>

#include "engine/active_request.h"
#include "model/executor.h"
#include "plan/planner.h"

namespace forerun {

class PassDrafts {
 public:
  // The executor outlives it. `n_context`: tokens that each request may have.
  PassDrafts(Executor& executor, int n_context) : executor_(executor), n_context_(n_context) {}

  // Clears the tree of each request, and fills it where one is planned for.
  void draft(std::span<const std::unique_ptr<ActiveRequest>> requests, const PassLoad& load);
  // That pass is done: `n_rows` and `n_context` as of PassCost.
  void observe(int n_rows, int n_context);
  // Work on drafts, other than draft(), took time.
  void add_seconds(double seconds) { seconds_ += seconds; }

 private:
  DraftLimits limits_of(const ActiveRequest& active) const;
  void plan(std::span<ActiveRequest* const> requests);  // of one planner
  bool try_plan(std::span<ActiveRequest* const> requests);
  // Whether the request's text must not depend on the shape of passes, where bits do.
  bool is_exact(const ActiveRequest& active) const {
    return executor_.min_rows() > 1 && active.speculation.accept == AcceptRule::kMatch;
  }

  Executor& executor_;
  int n_context_;
  PassLoad load_;
  double seconds_ = 0;              // since the last pass
  std::vector<Planner*> planners_;  // of this pass

  // Reused from pass to pass.
  std::vector<ActiveRequest*> planned_;  // those of one planner next to each other
  std::vector<PlanJob> jobs_;
};

}  // namespace forerun
