// A pass of a model that is spread over devices is computed in stages, one after the other: runs of
// blocks that one part of the model has. The states behind one stage enter the next.
#pragma once

#include <span>
#include <vector>

#include "model/layer_set.h"

namespace forerun {

struct PassStage {
  int part;
  LayerSet layers;  // those of the pass that the part computes now
  int end;          // the last of the boundaries that are this stage's: behind the one before
  bool has_head = false;
};

// Which part has what.
struct StagePlan {
  std::span<const int> part_of_block;
  int head_part;
};

// The stages of a pass over `layers`, at least one. Blocks that are left out part no stages. `stages` is
// written anew, which allocates nothing once it was as long.
void plan_stages(const StagePlan& plan, const LayerSet& layers, bool wants_logits,
                 std::vector<PassStage>& stages);

// The stage with the last attention block; -1: none runs.
int last_attention_stage(std::span<const PassStage> stages);

}  // namespace forerun
