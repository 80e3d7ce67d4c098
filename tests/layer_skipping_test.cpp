// A pass that leaves blocks out equals libllama on a file in which those blocks add
// nothing: the projections they end with, and their biases, are zero.
//
// Adding zero changes no float, so the bounds are those of logits_test.cpp.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/both_engines.h"
#include "support/distance.h"
#include "support/engine.h"
#include "support/model_files.h"
#include "support/temp_dir.h"
#include "support/zeroed_blocks.h"

namespace forerun {
namespace {

using namespace test;

BothLogits read(const Model& model, Executor& executor, const LayerSet& layers, uint32_t seed) {
  const TempDir dir;
  const auto path = dir.file("zeroed.gguf");
  write_without(layers, model.file().path(), path);
  LibLlama reference(path);
  const auto tokens = random_tokens(model, 44, seed);
  return read_with_both(executor, reference, tokens, 40, layers);
}

TEST(LayerSkipping, EqualsLibllamaWithZeroedProjections) {
  for (const std::string name :
       {"tiny-llama",      "tiny-llama-bias",    "tiny-llama-q4_k",   "tiny-qwen2",    "tiny-qwen3",
        "tiny-gemma3",     "tiny-gemma3-layers", "tiny-gemma3-fused", "tiny-gemma2",   "tiny-granite",
        "tiny-glm4",       "tiny-phi",           "tiny-smollm3",      "tiny-olmo2",    "tiny-olmo3",
        "tiny-exaone4",    "tiny-hunyuan",       "tiny-mistral3",     "tiny-stablelm", "tiny-olmo",
        "tiny-starcoder2", "tiny-nemotron",      "tiny-mixtral-q4_0", "tiny-qwen2moe", "tiny-granitemoe",
        "tiny-gpt-oss",    "tiny-cohere2",       "tiny-gemma4",       "tiny-gemma4-e", "tiny-gemma4-moe",
        "tiny-deepseek2",  "tiny-llama4"}) {
    const auto model = load_model(model_file(name));
    const auto executor = make_executor(model);
    const int n_layers = model->config().n_layers;
    std::mt19937 random(3);
    std::vector<LayerSet> sets = {LayerSet::none(n_layers), LayerSet::first_blocks(n_layers, 1),
                                  LayerSet::first_blocks(n_layers, 2 * n_layers - 1)};
    for (int i = 0; i < 4; ++i) sets.push_back(random_layer_set(n_layers, random));
    for (size_t i = 0; i < sets.size(); ++i) {
      const BothLogits logits = read(*model, *executor, sets[i], static_cast<uint32_t>(i));
      EXPECT_TRUE(are_near(*model, logits.ours, logits.theirs)) << name << ", set " << i;
    }
  }
}

}  // namespace
}  // namespace forerun
