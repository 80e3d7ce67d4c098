// Drafts as a method's authors do, and decides nothing: the one drafter there is proposes, and all of it
// is verified, up to a number of nodes.
#pragma once

#include "plan/planner.h"

namespace forerun {

class OwnPlanner final : public Planner {
 public:
  // Of the drafters there is one, or none.
  OwnPlanner(DrafterSet drafters, TreeSize largest);
  OwnPlanner(DrafterSet drafters, int largest)
      : OwnPlanner(std::move(drafters), [largest](int) { return largest; }) {}

 private:
  void fill(std::span<const PlanJob> jobs, const PassLoad& load) override;

  std::vector<ModelDraftJob> jobs_;
};

}  // namespace forerun
