// A small model some of whose blocks do nothing: which, searches must find out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cost/pass_costs.h"
#include "model/executor.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"
#include "support/written_text.h"

namespace forerun::test {

constexpr int kPlantedLayers = 12;
// Blocks whose output is nothing, at irregular places; not in the first and last layer.
inline const std::vector<int> kPlanted = {3, 4, 5, 7, 9, 10, 11, 14, 15, 16, 18, 20, 21};

inline LayerSet without_planted() {
  LayerSet layers = LayerSet::full(kPlantedLayers);
  for (const int block : kPlanted) layers.set(BlockId{block}, false);
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
    if (without_planted().runs(BlockId{block}))
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

class PlantedTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Model> model_ = load_planted_model();
  std::unique_ptr<Executor> executor_ =
      std::make_unique<Executor>(model_, ExecutorOptions{.kv = {.n_cells = 512}, .max_rows = 128});
  PassCosts costs_{planted_costs(), PassCosts::Known::kGiven};
};

}  // namespace forerun::test
