#include "plan/planner.h"

#include <algorithm>

#include "draft/text/given.h"

namespace forerun {

RequestPlan::RequestPlan(const DrafterSet& drafters, const RequestView& request) : request_(request) {
  for (const auto& drafter : drafters.texts) texts.push_back(drafter->begin(request.text()));
  for (const auto& drafter : drafters.models) models.push_back(drafter->begin(request));
  const auto expected = request.prediction();
  if (!expected.empty()) given.push_back(std::make_unique<PredictionDrafter>(expected));
  if (request.state().constraint() != nullptr) given.push_back(std::make_unique<ForcedDrafter>(request));
}

void RequestPlan::observe(const DraftTree& tree, const TargetTokens& target) {
  for (const auto& drafter : texts) drafter->observe(tree, target);
}

void RequestPlan::finish() {
  for (const auto& drafter : texts) drafter->finish();
  for (const auto& drafter : models) drafter->finish();
}

void Planner::plan(std::span<const PlanJob> jobs, const PassLoad& load) {
  limited_.assign(jobs.begin(), jobs.end());
  const int largest = largest_(load.n_decoding);
  for (PlanJob& job : limited_) job.limits.max_nodes = std::min(job.limits.max_nodes, largest);
  fill(limited_, load);
}

void Planner::append(RequestPlan& request, std::span<const TokenId> tokens) {
  for (const auto& drafter : request.texts) drafter->append(tokens);
  for (const auto& drafter : request.models) drafter->append(tokens);
  for (const auto& drafter : request.given) drafter->append(tokens);
}

}  // namespace forerun
