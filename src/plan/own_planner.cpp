#include "plan/own_planner.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {

OwnPlanner::OwnPlanner(DrafterSet drafter, TreeSize size)
    : Planner(std::move(drafter)), size_(std::move(size)) {
  CHECK(drafters().texts.size() + drafters().models.size() <= 1);
}

void OwnPlanner::plan(std::span<const PlanJob> jobs, const PassLoad& load) {
  jobs_.clear();
  const int size = size_(load.n_decoding);
  for (const PlanJob& job : jobs) {
    DraftLimits limits = job.limits;
    limits.max_nodes = std::min(limits.max_nodes, size);
    if (limits.max_nodes <= 0) continue;
    for (const auto& drafter : job.request->texts) drafter->draft(limits, *job.tree);
    for (const auto& drafter : job.request->models) {
      const auto plan = drafter->plan();
      if (!plan || plan->max_tokens <= 0) continue;
      jobs_.push_back({.drafter = drafter.get(),
                       .plan = *plan,
                       .limits = limits,
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
