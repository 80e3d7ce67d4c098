// Drafts as a method's authors do, and decides nothing: the one drafter there is proposes, and all of it
// is verified, up to a number of nodes.
#pragma once

#include "plan/planner.h"

namespace forerun {

class OwnPlanner final : public Planner {
 public:
  // Of the drafters there is one, or none.
  OwnPlanner(DrafterSet drafters, TreeSize size);
  OwnPlanner(DrafterSet drafters, int size)
      : OwnPlanner(std::move(drafters), [size](int) { return size; }) {}

  void plan(std::span<const PlanJob> jobs, const PassLoad& load) override;

 private:
  TreeSize size_;
  std::vector<ModelDraftJob> jobs_;
};

}  // namespace forerun
