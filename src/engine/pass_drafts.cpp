#include "engine/pass_drafts.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

// Drafts that fail so often, one after the other, are given up.
constexpr int kMostFailures = 3;

// Takes out what the request's grammar forbids: no pass is needed to know that it is wrong. (Where
// distributions are compared, drafts were drawn from what it allows.)
void prune_forbidden(DraftTree& tree, const Constraint& start) {
  std::vector<std::shared_ptr<const Constraint>> places(static_cast<size_t>(tree.size()));
  std::vector<bool> keep(places.size());
  for (int32_t node = 0; node < tree.size(); ++node) {
    const auto index = static_cast<size_t>(node);
    const int32_t parent = tree[node].parent;
    const Constraint* above = parent == kRoot ? &start : places[static_cast<size_t>(parent)].get();
    keep[index] = above != nullptr && above->allows(tree[node].token);
    if (keep[index]) places[index] = above->after(tree[node].token);
  }
  tree.prune(keep);
}

}  // namespace

void PassDrafts::draft(std::span<const std::unique_ptr<ActiveRequest>> requests, const PassLoad& load) {
  load_ = load;
  planners_.clear();
  planned_.clear();
  for (const auto& active : requests) {
    active->tree.clear();
    if (active->is_planned()) planned_.push_back(active.get());
  }
  const auto planner_of = [](const ActiveRequest* active) { return active->speculation.planner; };
  std::ranges::stable_sort(planned_, {}, planner_of);
  for (std::span<ActiveRequest* const> left = planned_; !left.empty();) {
    const auto other = std::ranges::find_if(left, [&](const ActiveRequest* active) {
      return planner_of(active) != planner_of(left.front());
    });
    const auto n = static_cast<size_t>(other - left.begin());
    plan(left.first(n));
    left = left.subspan(n);
  }
}

DraftLimits PassDrafts::limits_of(const ActiveRequest& active) const {
  // As many cells again are for what drafters try out.
  const int n_cells = (executor_.cells().n_free() - load_.n_decoding) / 2;
  const int share = std::min(executor_.max_rows() - load_.n_decoding, n_cells) / load_.n_decoding;
  // The text's last token is a row too, and what lies past the end of the context or of the
  // answer cannot be accepted.
  const int n_committed = static_cast<int>(active.slot->text.size());
  const int room = n_context_ - n_committed - 1;
  DraftLimits limits{.max_nodes = std::min({share, room, kLargestTree}),
                     .max_depth = std::min(room, active.request->n_left() - 1)};
  if (active.request->max_draft() >= 0) {
    limits.max_nodes = std::min(limits.max_nodes, active.request->max_draft());
  }
  const PassLimits of_passes = executor_.limits();
  limits.is_chain = !of_passes.trees;
  limits.max_depth = std::min(limits.max_depth, of_passes.depth);
  // Where bits depend on a pass's shape, rows give those of plain decoding in a chain that
  // leaves the shape as it is.
  if (is_exact(active)) {
    limits.is_chain = true;
    limits.max_depth =
        std::min({limits.max_depth, executor_.min_rows() - 1, executor_.n_until_next_span(n_committed)});
  }
  return limits;
}

void PassDrafts::plan(std::span<ActiveRequest* const> requests) {
  const Stopwatch watch;
  if (try_plan(requests)) planners_.push_back(requests.front()->speculation.planner);
  seconds_ += watch.seconds();
  const double ms = watch.ms() / static_cast<double>(requests.size());
  for (ActiveRequest* active : requests) active->request->speculation().draft_ms += ms;
}

bool PassDrafts::try_plan(std::span<ActiveRequest* const> requests) {
  jobs_.clear();
  for (ActiveRequest* active : requests) {
    const DraftLimits limits = limits_of(*active);
    if (limits.max_nodes <= 0 || limits.max_depth <= 0) continue;
    jobs_.push_back({.request = active->plan.get(), .limits = limits, .tree = &active->tree});
  }
  try {
    if (!jobs_.empty()) requests.front()->speculation.planner->plan(jobs_, load_);
  } catch (...) {
    for (ActiveRequest* active : requests) {
      executor_.cells().rollback(active->slot->sequence);
      active->tree.clear();
      active->plan->is_planned = false;
      if (++active->n_failed_drafts == kMostFailures) active->try_drafting([] { throw; });
    }
    return false;
  }
  for (ActiveRequest* active : requests) active->n_failed_drafts = 0;
  for (const PlanJob& job : jobs_) {
    CHECK(job.tree->size() <= job.limits.max_nodes && job.tree->max_depth() <= job.limits.max_depth);
    const Constraint* constraint = job.request->request().state().constraint();
    if (constraint != nullptr && !job.tree->has_distributions()) prune_forbidden(*job.tree, *constraint);
  }
  return true;
}

void PassDrafts::observe(int n_rows, int n_context) {
  const PassCost cost{.load = load_,
                      .n_rows = n_rows,
                      .n_context = n_context,
                      .draft_seconds = std::exchange(seconds_, 0.0)};
  for (Planner* planner : planners_) planner->observe(cost);
}

}  // namespace forerun
