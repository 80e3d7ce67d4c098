#include "plan/own_planner.h"

#include "core/check.h"

namespace forerun {

OwnPlanner::OwnPlanner(DrafterSet drafter, TreeSize largest)
    : Planner(std::move(drafter), std::move(largest)) {
  CHECK(drafters().texts.size() + drafters().models.size() <= 1);
}

void OwnPlanner::fill(std::span<const PlanJob> jobs, const PassLoad& load) {
  jobs_.clear();
  for (const PlanJob& job : jobs) {
    if (job.limits.max_nodes <= 0) continue;
    for (const auto& drafter : job.request->texts) drafter->draft(job.limits, *job.tree);
    for (const auto& drafter : job.request->models) {
      const auto plan = drafter->plan();
      if (!plan || plan->max_tokens <= 0) continue;
      jobs_.push_back({.drafter = drafter.get(),
                       .plan = *plan,
                       .limits = job.limits,
                       .tree = job.tree,
                       .n_requests = load.n_decoding});
    }
  }
  if (!jobs_.empty()) drafters().models.front()->draft(jobs_);
  for (const PlanJob& job : jobs) {
    if (job.limits.is_chain) job.tree->prune_to_chain();
  }
}

}  // namespace forerun
