// A pass of a model that is spread over devices is computed in stages, one after the other: runs of
// blocks that one part of the model has. The states behind one stage enter the next. Where the last
// layers look at cells of others alone, they can be a stage of their own, of the rows that something
// comes out of.
#pragma once

#include <span>
#include <vector>

#include "model/config.h"
#include "model/layer_set.h"

namespace forerun {

struct PassStage {
  int part;
  LayerSet layers;   // those of the pass that the part computes now
  LayerSet leaving;  // attention that is left out, but for the cells that others of the pass look at
  int begin;         // the boundary where states enter, from which on blocks that are left out are its
  int end;           // the last of the boundaries that are this stage's: behind the one before
  bool has_head = false;

  bool has_attention() const { return layers.has_attention() || leaving.has_attention(); }
};

// Which part has what.
struct StagePlan {
  std::span<const int> part_of_block;
  int head_part;
  const ModelConfig* config = nullptr;  // nullptr: no layer looks at another's cells
  bool parts_sharing = false;           // whether layers without cells are a stage of their own
};

// The stages of a pass over `layers`, at least one. Blocks that are left out part no stages. `stages` is
// written anew, which allocates nothing once it was as long.
void plan_stages(const StagePlan& plan, const LayerSet& layers, bool wants_logits,
                 std::vector<PassStage>& stages);

// The last stage that writes cells; -1: none does. `first_sharing`: the first layer that has none.
int last_writing_stage(std::span<const PassStage> stages, int first_sharing);

}  // namespace forerun
