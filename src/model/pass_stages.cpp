#include "model/pass_stages.h"

#include <algorithm>

namespace forerun {
namespace {

// Whether a layer that runs looks at the cells of this one.
bool is_looked_at(const ModelConfig* config, const LayerSet& layers, int layer) {
  if (config == nullptr || !config->first_sharing_cells) return false;
  for (int other = *config->first_sharing_cells; other < config->n_layers; ++other) {
    if (config->cells_layer(other) == layer && layers.runs(attention_block(other))) return true;
  }
  return false;
}

}  // namespace

void plan_stages(const StagePlan& plan, const LayerSet& layers, bool wants_logits,
                 std::vector<PassStage>& stages) {
  stages.clear();
  const LayerSet none = LayerSet::none(layers.n_layers());
  const int parted_at = plan.parts_sharing ? 2 * plan.config->first_sharing_cells.value() : 0;
  const auto go_on_with = [&](int part, int boundary) {
    const bool is_parted = !stages.empty() && stages.back().begin < parted_at && boundary >= parted_at;
    if (!stages.empty() && stages.back().part == part && !is_parted) return;
    if (!stages.empty()) stages.back().end = boundary;
    stages.push_back({.part = part,
                      .layers = none,
                      .leaving = none,
                      .begin = stages.empty() ? 0 : boundary,
                      .end = layers.n_blocks()});
  };
  for (int b = 0; b < layers.n_blocks(); ++b) {
    const bool runs = layers.runs(BlockId{b});
    if (!runs && (b % 2 == 1 || !is_looked_at(plan.config, layers, b / 2))) continue;
    go_on_with(plan.part_of_block[static_cast<size_t>(b)], b);
    (runs ? stages.back().layers : stages.back().leaving).set(BlockId{b}, true);
  }
  if (wants_logits || stages.empty()) go_on_with(plan.head_part, layers.n_blocks());
  stages.back().has_head = wants_logits;
}

int last_writing_stage(std::span<const PassStage> stages, int first_sharing) {
  const auto writes = [&](const PassStage& stage) {
    for (int layer = 0; layer < std::min(first_sharing, stage.layers.n_layers()); ++layer) {
      const BlockId block = attention_block(layer);
      if (stage.layers.runs(block) || stage.leaving.runs(block)) return true;
    }
    return false;
  };
  auto last = static_cast<int>(stages.size()) - 1;
  while (last >= 0 && !writes(stages[static_cast<size_t>(last)])) --last;
  return last;
}

}  // namespace forerun
