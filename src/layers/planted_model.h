// For tests: a small model some of whose blocks do nothing. Which, a search must find out.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "budget/calibration.h"
#include "model/layer_set.h"
#include "model/model.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun::test {

constexpr int kPlantedLayers = 12;
// Blocks whose output is nothing, at irregular places; not in the first and last layer.
constexpr std::array kPlantedBlocks = {3, 4, 5, 7, 9, 10, 11, 14, 15, 16, 18, 20, 21};

inline LayerSet without_planted() {
  LayerSet layers = LayerSet::full(kPlantedLayers);
  for (const int block : kPlantedBlocks) layers.set(BlockId{block}, false);
  return layers;
}

inline std::shared_ptr<const Model> load_planted_model() {
  const TinyModelSpec spec{.n_layers = kPlantedLayers, .n_vocab = 300};
  GgufBuilder builder = tiny_model(spec);
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.0f, 0.5f);  // enough to matter
  for (int block = 0; block < 2 * kPlantedLayers; ++block) {
    const bool is_attention = block % 2 == 0;
    const int n_in = is_attention ? spec.n_heads * spec.head_dim : spec.n_ff;
    std::vector<float> weights(static_cast<size_t>(n_in * spec.n_embd), 0.0f);
    if (std::find(kPlantedBlocks.begin(), kPlantedBlocks.end(), block) == kPlantedBlocks.end())
      std::generate(weights.begin(), weights.end(), [&] { return normal(random); });
    const char* name = is_attention ? ".attn_output.weight" : ".ffn_down.weight";
    builder.add_floats("blk." + std::to_string(block / 2) + name, {n_in, spec.n_embd}, weights);
  }
  const TempDir folder;
  const auto path = folder.file("model.gguf");
  builder.write(path);
  return Model::load(GgufFile::open(path),
                     Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false}));
}

// A row costs little beside a pass, so that long drafts pay.
inline Calibration planted_costs() {
  return {.curve = CostCurve({{.n_rows = 1, .seconds = 26, .seconds_per_token = 0},
                              {.n_rows = 64, .seconds = 40, .seconds_per_token = 0}}),
          .blocks = {.attention = 1, .mlp = 1, .rest = 2}};
}

}  // namespace forerun::test
