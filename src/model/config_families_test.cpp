// What the metadata of single families says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/config_fixtures.h"

namespace forerun {
namespace {

using namespace test;

TEST(Config, Qwen3RotatesHalves) {
  EXPECT_EQ(read(tiny_model({.architecture = "qwen2"})).rope.layout, RopeLayout::kHalves);
  EXPECT_EQ(read(tiny_model({.architecture = "qwen3"})).rope.layout, RopeLayout::kHalves);
}

TEST(Config, Gemma3Windows) {
  auto builder = tiny_model({.architecture = "gemma3", .n_layers = 7});
  ModelConfig config = read(builder);
  EXPECT_EQ(config.window, 4);
  EXPECT_THAT(config.layer_is_windowed,
              ::testing::ElementsAre(true, false, true, false, true, false, true));
  EXPECT_EQ(config.window_rope.freq_base, 10000.0f);
  EXPECT_FLOAT_EQ(config.embedding_scale, std::sqrt(32.0f));
  EXPECT_FLOAT_EQ(config.query_scale, 0.25f);
  EXPECT_EQ(config.attention_scale, 1.0f);

  config = read(builder.remove("gemma3.attention.sliding_window_pattern"));
  EXPECT_THAT(config.layer_is_windowed,
              ::testing::ElementsAre(true, true, true, true, true, false, true));

  // Scaling and base are those of the layers that see everything.
  builder.set("gemma3.rope.freq_base", 1e6f).set("gemma3.rope.scaling.factor", 8.0f);
  config = read(builder);
  EXPECT_EQ(config.rope_of(5).freq_base, 1e6f);
  EXPECT_EQ(config.rope_of(5).freq_scale, 0.125f);
  EXPECT_EQ(config.rope_of(0).freq_base, 10000.0f);
  EXPECT_EQ(config.rope_of(0).freq_scale, 1.0f);
  EXPECT_EQ(read(builder.set("gemma3.rope.freq_base_swa", 5e4f)).rope_of(0).freq_base, 5e4f);

  config = read(builder.remove("gemma3.attention.sliding_window"));
  EXPECT_EQ(config.window, 0);
  EXPECT_FALSE(config.is_windowed(0));
}

TEST(Config, Gemma3WindowPatternPerLayer) {
  auto builder = tiny_model({.architecture = "gemma3", .n_layers = 3});
  const bool flags[3] = {false, true, false};
  gguf_set_arr_data(builder.metadata(), "gemma3.attention.sliding_window_pattern", GGUF_TYPE_BOOL, flags,
                    3);
  EXPECT_THAT(read(builder).layer_is_windowed, ::testing::ElementsAre(false, true, false));
  gguf_set_arr_data(builder.metadata(), "gemma3.attention.sliding_window_pattern", GGUF_TYPE_BOOL, flags,
                    2);
  expect_refused(builder, ErrorCode::kInvalidFile, "2 entries for 3 layers");
  gguf_set_val_i32(builder.metadata(), "gemma3.attention.sliding_window_pattern", -1);
  expect_refused(builder, ErrorCode::kInvalidFile, "sliding_window_pattern");
}

// Layers 0, 1, 3 and 4 have windows; 3 to 5 look at cells of 1 and 2.
GgufBuilder gemma4() {
  auto builder = tiny_model({.architecture = "gemma4", .n_layers = 6});
  const bool windows[6] = {true, true, false, true, true, false};
  gguf_set_arr_data(builder.metadata(), "gemma4.attention.sliding_window_pattern", GGUF_TYPE_BOOL,
                    windows, 6);
  const int32_t n_kv[6] = {2, 2, 1, 2, 2, 1}, n_ff[6] = {32, 32, 32, 64, 64, 64};
  gguf_set_arr_data(builder.metadata(), "gemma4.attention.head_count_kv", GGUF_TYPE_INT32, n_kv, 6);
  gguf_set_arr_data(builder.metadata(), "gemma4.feed_forward_length", GGUF_TYPE_INT32, n_ff, 6);
  for (const char* name : {"attention.key_length", "attention.value_length"}) {
    builder.set(fmt::format("gemma4.{}", name), 32u).set(fmt::format("gemma4.{}_swa", name), 16u);
  }
  builder.set("gemma4.rope.dimension_count", 32u).set("gemma4.rope.dimension_count_swa", 16u);
  builder.set("gemma4.rope.freq_base", 1e6f).set("gemma4.rope.freq_base_swa", 1e4f);
  return builder.set("gemma4.attention.shared_kv_layers", 3u);
}

TEST(Config, Gemma4HasLayersOfTwoKinds) {
  const ModelConfig config = read(gemma4());
  EXPECT_EQ(config.heads_of(0).n_embd_kv(), 2 * 16);
  EXPECT_EQ(config.heads_of(2).n_embd_kv(), 1 * 32);
  EXPECT_EQ(config.heads_of(2).n_embd_q(), 2 * 32);
  EXPECT_EQ(config.rope_of(0).n_dims, 16);
  EXPECT_EQ(config.rope_of(0).freq_base, 1e4f);
  EXPECT_FALSE(config.rope_of(0).has_factors);
  EXPECT_EQ(config.rope_of(2).n_dims, 32);
  EXPECT_EQ(config.rope_of(2).freq_base, 1e6f);
  EXPECT_TRUE(config.rope_of(2).has_factors);
  EXPECT_EQ(config.n_ff_of(0), 32);
  EXPECT_EQ(config.n_ff_of(3), 64);
  EXPECT_EQ(config.n_ff, 64);
  EXPECT_EQ(config.attention_scale, 1.0f);
  EXPECT_EQ(config.n_embd_per_layer, 16);
  EXPECT_EQ(config.logit_softcap, 30.0f);
}

TEST(Config, Gemma4SharesCells) {
  const ModelConfig config = read(gemma4());
  std::vector<int> looked_at;
  for (int layer = 0; layer < config.n_layers; ++layer) looked_at.push_back(config.cells_layer(layer));
  EXPECT_THAT(looked_at, ::testing::ElementsAre(0, 1, 2, 1, 1, 2));
  EXPECT_EQ(config.n_cell_numbers(), 2 * (32 + 32 + 32));
  EXPECT_TRUE(config.must_stay_together());
  const std::string key = "gemma4.attention.shared_kv_layers";
  EXPECT_EQ(read(gemma4().set(key, 0u)).cells_layer(5), 5);
  expect_refused(gemma4().set(key, 4u), ErrorCode::kInvalidFile, "layer 2 could look at");
  for (const uint32_t n : {6u, 7u}) expect_refused(gemma4().set(key, n), ErrorCode::kInvalidFile, key);
}

TEST(Config, Gemma4RefusesWhatDoesNotFit) {
  expect_refused(gemma4().set("gemma4.rope.dimension_count_swa", 32u), ErrorCode::kInvalidFile,
                 "does not fit heads of 16");
  expect_refused(gemma4().set("gemma4.attention.value_length_swa", 32u), ErrorCode::kUnsupported,
                 "different head sizes");
  auto few = gemma4();
  const int32_t n_ff[2] = {32, 32};
  gguf_set_arr_data(few.metadata(), "gemma4.feed_forward_length", GGUF_TYPE_INT32, n_ff, 2);
  expect_refused(few, ErrorCode::kInvalidFile, "2 entries for 6 layers");
  auto mixed = gemma4();
  const int32_t n_kv[6] = {2, 1, 1, 2, 2, 1};
  gguf_set_arr_data(mixed.metadata(), "gemma4.attention.head_count_kv", GGUF_TYPE_INT32, n_kv, 6);
  expect_refused(mixed, ErrorCode::kUnsupported, "differs between layers");
}

TEST(Config, DeepSeek2HasLatentNumbers) {
  const auto deepseek = [] { return tiny_model({.architecture = "deepseek2"}); };
  ModelConfig config = read(deepseek());
  EXPECT_EQ(config.latent.n, 32);
  EXPECT_EQ(config.latent.n_query, 16);
  EXPECT_EQ(config.heads.dim, 48);
  EXPECT_EQ(config.heads.n_kv, 1);
  EXPECT_EQ(config.n_cell_numbers(0), 48) << "values are a part of the key";
  EXPECT_FLOAT_EQ(config.attention_scale, 1.0f / std::sqrt(32.0f));
  EXPECT_EQ(config.experts.gating, ExpertGating::kSoftmax);
  EXPECT_EQ(config.experts.n_ff_shared, config.experts.n_ff);

  // With YaRN rotation keeps magnitudes where the file says how scores grow.
  auto stretched = deepseek();
  stretched.set("deepseek2.rope.scaling.type", "yarn").set("deepseek2.rope.scaling.factor", 4.0f);
  EXPECT_FLOAT_EQ(read(stretched).rope.attn_factor, 1.0f);
  config = read(stretched.set("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707f));
  EXPECT_FLOAT_EQ(config.rope.attn_factor * (1.0f + 0.1f * std::log(4.0f)), 1.0f);
  const float growth = 1.0f + 0.0707f * std::log(4.0f);
  EXPECT_FLOAT_EQ(config.attention_scale, growth * growth / std::sqrt(32.0f));

  expect_refused(deepseek().remove("deepseek2.attention.key_length_mla"), ErrorCode::kUnsupported,
                 "keys are made of it");
  expect_refused(deepseek().set("deepseek2.attention.kv_lora_rank", 40u), ErrorCode::kUnsupported,
                 "multiples of 16");
  expect_refused(deepseek().set("deepseek2.attention.key_length_mla", 16u), ErrorCode::kInvalidFile,
                 "does not fit keys of 16");
  expect_refused(deepseek().set("deepseek2.attention.temperature_scale", 0.1f), ErrorCode::kUnsupported,
                 "grow with their position");
}

TEST(Config, Llama4SeesRunsAndRotatesThere) {
  const auto llama4 = [] { return tiny_model({.architecture = "llama4", .n_layers = 8}); };
  ModelConfig config = read(llama4());
  EXPECT_TRUE(config.is_windowed(2) && config.rotates(2) && !config.has_temperature(2));
  EXPECT_TRUE(!config.is_windowed(3) && !config.rotates(3) && config.has_temperature(3));
  EXPECT_EQ(config.sliding_window().size_at(8191), 8192);
  EXPECT_EQ(config.sliding_window().size_at(8192), 1);
  EXPECT_EQ(config.temperature(8190), 1.0f);
  EXPECT_FLOAT_EQ(config.temperature(8191), 1.0f + 0.1f * std::log(2.0f));
  EXPECT_TRUE(config.experts.weighs_inputs);
  EXPECT_TRUE(config.has_experts(0));
  config = read(llama4().set("llama4.interleave_moe_layer_step", 2u));
  EXPECT_FALSE(config.has_experts(0));
  EXPECT_TRUE(config.has_experts(1));
  config = read(llama4().set("llama4.attention.sliding_window", 0u));
  EXPECT_FALSE(config.is_windowed(0));
  EXPECT_TRUE(config.rotates(3));
  EXPECT_EQ(config.temperature(100'000), 1.0f);
  expect_refused(llama4().remove("llama4.expert_count"), ErrorCode::kUnsupported, "without experts");
}

TEST(Config, NormsOfMeansHaveAKeyOfTheirOwn) {
  const auto starcoder = [] { return tiny_model({.architecture = "starcoder2"}); };
  const ModelConfig config = read(starcoder());
  EXPECT_EQ(config.norm_kind, NormKind::kLayer);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-5f);
  EXPECT_FALSE(config.has_gates);
  const std::string key = "starcoder2.attention.layer_norm_epsilon";
  expect_refused(starcoder().remove(key), ErrorCode::kInvalidFile, key);
  expect_refused(starcoder().set(key, -1.0f), ErrorCode::kInvalidFile, key);
}

TEST(Config, Olmo3RotatesInWindowsWithoutYarn) {
  auto builder = tiny_model({.architecture = "olmo2", .n_layers = 5});
  builder.set("olmo2.rope.scaling.type", "yarn").set("olmo2.rope.scaling.factor", 8.0f);
  builder.set("olmo2.rope.freq_base", 5e5f);
  ModelConfig config = read(builder);
  EXPECT_EQ(config.head_norms, HeadNorms::kTogether);
  EXPECT_FALSE(config.has_block_norms);
  EXPECT_THAT(config.layer_is_windowed, ::testing::ElementsAre(true, true, true, false, true));
  EXPECT_EQ(config.rope_of(0).freq_base, 5e5f);
  EXPECT_EQ(config.rope_of(0).freq_scale, 1.0f);
  EXPECT_EQ(config.rope_of(0).ext_factor, 0.0f);
  EXPECT_EQ(config.rope_of(3).freq_scale, 0.125f);
  EXPECT_EQ(config.rope_of(3).ext_factor, 1.0f);
  config = read(builder.remove("olmo2.attention.sliding_window"));
  EXPECT_FALSE(config.is_windowed(0));
}

TEST(Config, Cohere2RotatesWhereItsWindowsAre) {
  auto builder = tiny_model({.architecture = "cohere2", .n_layers = 5});
  const ModelConfig config = read(builder.set("cohere2.logit_scale", 0.25f));
  EXPECT_TRUE(config.has_parallel_blocks);
  EXPECT_EQ(config.norm_kind, NormKind::kLayer);
  EXPECT_EQ(config.logit_scale, 0.25f);
  EXPECT_EQ(config.layer_is_windowed, (std::vector<bool>{true, true, true, false, true}));
  EXPECT_EQ(config.layer_rotates, config.layer_is_windowed);
  EXPECT_EQ(read(tiny_model({.architecture = "command-r"})).logit_scale, 1.0f) << "none";
}

TEST(Config, Exaone4HasWindowsInTheLargeModel) {
  auto builder = tiny_model({.architecture = "exaone4", .n_layers = 64});
  const ModelConfig config = read(builder);
  EXPECT_EQ(config.window, 4096);
  EXPECT_TRUE(config.is_windowed(2) && config.rotates(2));
  EXPECT_FALSE(config.is_windowed(3) || config.rotates(3));
  EXPECT_EQ(read(builder.set("exaone4.attention.sliding_window", 8u)).window, 8);
  auto small = tiny_model({.architecture = "exaone4"});
  small.set("exaone4.attention.sliding_window", 8u);
  EXPECT_EQ(read(small).window, 0);
  EXPECT_TRUE(read(small).rotates(1));
}

TEST(Config, HunyuanStretchesItsBase) {
  const auto hunyuan = [] { return tiny_model({.architecture = "hunyuan-dense"}); };
  // Heads of 16.
  EXPECT_FLOAT_EQ(read(hunyuan()).rope.freq_base, 10000.0f * std::pow(100.0f, 16.0f / 14.0f));
  const std::string alpha = "hunyuan-dense.rope.scaling.alpha";
  EXPECT_EQ(read(hunyuan().remove(alpha)).rope.freq_base, 10000.0f);
  expect_refused(hunyuan().set(alpha, 3e38f), ErrorCode::kInvalidFile, alpha);
}

TEST(Config, Mistral3) {
  auto builder = tiny_model({.architecture = "mistral3"});
  builder.set("mistral3.rope.scaling.type", "yarn").set("mistral3.rope.scaling.factor", 4.0f);
  builder.set("mistral3.rope.scaling.original_context_length", 64u);
  builder.set("mistral3.rope.scaling.yarn_beta_fast", 8.0f);
  ModelConfig config = read(builder);
  EXPECT_EQ(config.rope.beta_fast, 8.0f);
  EXPECT_EQ(config.rope.attn_factor, 1.0f);
  EXPECT_EQ(config.temperature(0), 1.0f);
  EXPECT_EQ(config.temperature(63), 1.0f);
  EXPECT_FLOAT_EQ(config.temperature(64), 1.0f + 0.1f * std::log(2.0f));
  EXPECT_FLOAT_EQ(config.temperature(640), 1.0f + 0.1f * std::log(11.0f));
  // A multiplier of 1 takes all of the magnitude back.
  config = read(builder.set("mistral3.rope.scaling.yarn_log_multiplier", 1.0f));
  EXPECT_NEAR(config.rope.stretch().magnitude, 1.0f, 1e-6);
  config = read(builder.remove("mistral3.attention.temperature_scale"));
  EXPECT_EQ(config.temperature(640), 1.0f);
}

TEST(Config, VariantsThatAreNotOursAreRefused) {
  const auto refused = [](const std::string& architecture, const std::string& key) {
    auto builder = tiny_model({.architecture = architecture});
    expect_refused(builder.set(architecture + "." + key, 8.0f), ErrorCode::kUnsupported,
                   "not supported");
  };
  refused("olmo", "attention.clamp_kqv");
  refused("hunyuan-dense", "rope.dimension_sections");
  auto several = tiny_model({.architecture = "exaone4"});
  expect_refused(several.set("exaone4.nextn_predict_layers", 1u), ErrorCode::kUnsupported, "several");
  for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) {
    auto builder = tiny_model({.architecture = "minicpm"});
    expect_refused(builder.remove(std::string("minicpm.") + key), ErrorCode::kUnsupported, key);
  }
  for (const std::string architecture : {"qwen2vl", "qwen3vl"}) {
    auto builder = tiny_model({.architecture = architecture});
    const std::string key = architecture + ".rope.dimension_sections";
    const int32_t sections[4] = {2, 3, 3, 0}, four[4] = {2, 2, 2, 2};
    gguf_set_arr_data(builder.metadata(), key.c_str(), GGUF_TYPE_INT32, sections, 4);
    EXPECT_EQ(read(builder).rope.layout, RopeLayout::kHalves);
    gguf_set_arr_data(builder.metadata(), key.c_str(), GGUF_TYPE_INT32, four, 4);
    expect_refused(builder, ErrorCode::kUnsupported, key);
  }
}

TEST(Config, Gemma3RefusesSenselessNumbers) {
  const auto gemma = [] { return tiny_model({.architecture = "gemma3"}); };
  expect_refused(gemma().set("gemma3.final_logit_softcapping", -3.0f), ErrorCode::kInvalidFile,
                 "final_logit_softcapping");
  expect_refused(gemma().set("gemma3.attention.sliding_window", UINT32_MAX), ErrorCode::kInvalidFile,
                 "sliding_window");
  expect_refused(gemma().set("gemma3.rope.freq_base_swa", std::numeric_limits<float>::quiet_NaN()),
                 ErrorCode::kInvalidFile, "freq_base_swa");
  expect_refused(gemma().set("gemma3.rope.freq_base_swa", 0.0f), ErrorCode::kInvalidFile,
                 "freq_base_swa");
}

TEST(Config, GptOss) {
  const auto model = [] { return tiny_model({.architecture = "gpt-oss", .n_layers = 4}); };
  ModelConfig config = read(model());
  EXPECT_EQ(config.window, 4);
  EXPECT_EQ(config.layer_is_windowed, (std::vector<bool>{true, false, true, false}));
  EXPECT_TRUE(config.has_sinks);
  EXPECT_EQ(config.activation, Activation::kLimitedSwish);
  EXPECT_EQ(config.experts.gating, ExpertGating::kSoftmaxOfChosen);
  // Windowed layers rotate as the others do, unless they have a base of their own.
  auto builder = model();
  builder.set("gpt-oss.rope.scaling.type", "yarn").set("gpt-oss.rope.scaling.factor", 32.0f);
  config = read(builder);
  EXPECT_EQ(config.rope_of(0).freq_scale, 1.0f / 32);
  EXPECT_EQ(config.rope_of(0).ext_factor, 1.0f);
  EXPECT_EQ(config.rope_of(0).freq_base, config.rope_of(1).freq_base);
  EXPECT_EQ(read(builder.set("gpt-oss.rope.freq_base_swa", 5e4f)).rope_of(0).freq_base, 5e4f);
  expect_refused(model().set("gpt-oss.rope.freq_base_swa", 0.0f), ErrorCode::kInvalidFile,
                 "freq_base_swa");
  expect_refused(model().remove("gpt-oss.attention.sliding_window"), ErrorCode::kInvalidFile,
                 "sliding_window");
  expect_refused(model().set("gpt-oss.rope.dimension_count", 8u), ErrorCode::kUnsupported, "in part");
}

}  // namespace
}  // namespace forerun
