#include "model/pass_stages.h"

namespace forerun {
void plan_stages(const StagePlan& plan, const LayerSet& layers, bool wants_logits,
                 std::vector<PassStage>& stages) {
  stages.clear();
  const auto go_on_with = [&](int part, int boundary) {
    if (!stages.empty() && stages.back().part == part) return;
    if (!stages.empty()) stages.back().end = boundary;
    stages.push_back(
        {.part = part, .layers = LayerSet::none(layers.n_layers()), .end = layers.n_blocks()});
  };
  for (int b = 0; b < layers.n_blocks(); ++b) {
    if (!layers.runs(BlockId{b})) continue;
    go_on_with(plan.part_of_block[static_cast<size_t>(b)], b);
    stages.back().layers.set(BlockId{b}, true);
  }
  if (wants_logits || stages.empty()) go_on_with(plan.head_part, layers.n_blocks());
  stages.back().has_head = wants_logits;
}

int last_attention_stage(std::span<const PassStage> stages) {
  auto last = static_cast<int>(stages.size()) - 1;
  while (last >= 0 && !stages[static_cast<size_t>(last)].layers.has_attention()) --last;
  return last;
}

}  // namespace forerun
