#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "model/config_fixtures.h"
#include "model/layer_set.h"

namespace forerun {
namespace {

using namespace test;

TEST(Config, ReadsWhatEveryArchitectureHas) {
  const ModelConfig config = read(
      tiny_model({.n_layers = 3, .n_embd = 24, .n_heads = 4, .n_kv_heads = 2, .head_dim = 8, .n_ff = 40})
          .set("general.name", "Tiny"));
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.name, "Tiny");
  EXPECT_EQ(config.n_layers, 3);
  EXPECT_EQ(config.n_embd, 24);
  EXPECT_EQ(config.n_ctx_train, 256);
  EXPECT_EQ(config.heads.n, 4);
  EXPECT_EQ(config.heads.n_kv, 2);
  EXPECT_EQ(config.heads.dim, 8);
  EXPECT_EQ(config.heads.n_embd_q(), 32);
  EXPECT_EQ(config.heads.n_embd_kv(), 16);
  EXPECT_EQ(config.n_ff, 40);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-5f);
  EXPECT_FLOAT_EQ(config.attention_scale, 1.0f / std::sqrt(8.0f));
  EXPECT_EQ(config.query_scale, 1.0f);
  EXPECT_EQ(config.rope.n_dims, 8);
  EXPECT_EQ(config.rope.layout, RopeLayout::kPairs);
}

TEST(Config, AbsentHeadKeysFollowFromTheOthers) {
  auto builder = tiny_model({.n_embd = 32, .n_heads = 4, .n_kv_heads = 4, .head_dim = 8});
  builder.remove("llama.attention.head_count_kv")
      .remove("llama.attention.key_length")
      .remove("llama.attention.value_length")
      .remove("llama.rope.freq_base");
  const ModelConfig config = read(builder);
  EXPECT_EQ(config.heads.n_kv, 4);
  EXPECT_EQ(config.heads.dim, 8);
  EXPECT_EQ(config.rope.freq_base, 10000.0f);
}

TEST(Config, EveryRequiredKeyIsMissedByName) {
  for (const std::string key : {"llama.block_count", "llama.embedding_length", "llama.context_length",
                                "llama.feed_forward_length", "llama.attention.head_count",
                                "llama.attention.layer_norm_rms_epsilon"}) {
    expect_refused(tiny_model().remove(key), ErrorCode::kInvalidFile, key);
  }
}

TEST(Config, CountsOfZeroOrBeyondReasonAreRefused) {
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.context_length",
        "llama.feed_forward_length", "llama.attention.head_count", "llama.attention.head_count_kv",
        "llama.attention.key_length", "llama.attention.value_length"}) {
    expect_refused(tiny_model().set(key, 0u), ErrorCode::kInvalidFile, key);
    expect_refused(tiny_model().set(key, UINT32_MAX), ErrorCode::kInvalidFile, key);
    auto builder = tiny_model();
    gguf_set_val_i64(builder.metadata(), key.c_str(), -1);
    expect_refused(builder, ErrorCode::kInvalidFile, key);
    gguf_set_val_u64(builder.metadata(), key.c_str(), UINT64_MAX);
    expect_refused(builder, ErrorCode::kInvalidFile, key);
  }
}

TEST(Config, KeysOfAWrongTypeAreRefusedByName) {
  for (const std::string key :
       {"llama.block_count", "llama.embedding_length", "llama.rope.freq_base",
        "llama.attention.layer_norm_rms_epsilon", "llama.attention.head_count"}) {
    expect_refused(tiny_model().set(key, "seven"), ErrorCode::kInvalidFile, key);
  }
  expect_refused(tiny_model().set("llama.rope.scaling.type", 3u), ErrorCode::kInvalidFile,
                 "llama.rope.scaling.type");
  auto builder = tiny_model();
  const float array[2] = {1, 2};
  gguf_set_arr_data(builder.metadata(), "llama.embedding_length", GGUF_TYPE_FLOAT32, array, 2);
  expect_refused(builder, ErrorCode::kInvalidFile, "llama.embedding_length");
}

TEST(Config, NumbersThatAreNoneAreRefused) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::string key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base",
                                  "llama.rope.scaling.factor", "llama.rope.scaling.attn_factor"}) {
      expect_refused(tiny_model().set(key, value), ErrorCode::kInvalidFile, key);
    }
  }
  auto builder = tiny_model();
  gguf_set_val_f64(builder.metadata(), "llama.rope.freq_base", 1e300);
  expect_refused(builder, ErrorCode::kInvalidFile, "llama.rope.freq_base");
  for (const std::string key :
       {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base", "llama.rope.scaling.factor"}) {
    expect_refused(tiny_model().set(key, -1.0f), ErrorCode::kInvalidFile, key);
  }
}

TEST(Config, HeadsMustFitTogether) {
  expect_refused(tiny_model({.n_heads = 3, .n_kv_heads = 2}), ErrorCode::kInvalidFile,
                 "3 query heads cannot share 2");
  expect_refused(tiny_model().set("llama.attention.value_length", 8u), ErrorCode::kUnsupported,
                 "different head sizes");
  expect_refused(tiny_model().set("llama.rope.dimension_count", 7u), ErrorCode::kInvalidFile,
                 "rope.dimension_count");
  expect_refused(tiny_model().set("llama.rope.dimension_count", 18u), ErrorCode::kInvalidFile,
                 "rope.dimension_count");
  expect_refused(tiny_model().set("llama.rope.dimension_count", 8u), ErrorCode::kInvalidFile,
                 "rope.dimension_count");
  auto builder = tiny_model();
  builder.set("llama.attention.head_count", 1u << 20).set("llama.attention.head_count_kv", 1u);
  builder.set("llama.attention.key_length", 1u << 20).set("llama.attention.value_length", 1u << 20);
  expect_refused(builder, ErrorCode::kInvalidFile, "too many");
}

TEST(Config, PartialRotationIsAllowedWhereTheFamilyHasIt) {
  auto builder = tiny_model({.architecture = "qwen2"});
  EXPECT_EQ(read(builder.set("qwen2.rope.dimension_count", 8u)).rope.n_dims, 8);
}

TEST(Config, PerLayerValuesMustBeEqual) {
  auto builder = tiny_model();
  const int32_t equal[2] = {2, 2};
  gguf_set_arr_data(builder.metadata(), "llama.attention.head_count", GGUF_TYPE_INT32, equal, 2);
  EXPECT_EQ(read(builder).heads.n, 2);
  const int32_t different[2] = {2, 1};
  gguf_set_arr_data(builder.metadata(), "llama.attention.head_count", GGUF_TYPE_INT32, different, 2);
  expect_refused(builder, ErrorCode::kUnsupported, "differs between layers");
  gguf_set_arr_data(builder.metadata(), "llama.attention.head_count", GGUF_TYPE_INT32, different, 0);
  expect_refused(builder, ErrorCode::kUnsupported, "llama.attention.head_count");
  const int32_t zeros[2] = {0, 0};
  gguf_set_arr_data(builder.metadata(), "llama.attention.head_count", GGUF_TYPE_INT32, zeros, 2);
  expect_refused(builder, ErrorCode::kInvalidFile, "senseless");
}

TEST(Config, WhatForerunCannotDoIsSaid) {
  GgufBuilder seeing_all = tiny_model();
  gguf_set_val_bool(seeing_all.metadata(), "llama.attention.causal", false);
  expect_refused(seeing_all, ErrorCode::kUnsupported, "behind them");
  expect_refused(tiny_model({.architecture = "qwen3"})
                     .set("qwen3.expert_count", 8u)
                     .set("qwen3.expert_used_count", 2u),
                 ErrorCode::kUnsupported, "mixtures of experts");
  expect_refused(tiny_model().set("llama.rope.scaling.type", "longrope"), ErrorCode::kUnsupported,
                 "longrope");
  expect_refused(tiny_model().set("llama.block_count", static_cast<uint32_t>(LayerSet::kMaxLayers) + 1),
                 ErrorCode::kUnsupported, "layers");
}

TEST(Config, RopeScalings) {
  EXPECT_EQ(read(tiny_model()).rope.freq_scale, 1.0f);
  EXPECT_EQ(read(tiny_model()).rope.ext_factor, 0.0f);

  // Without a type a factor means linear; the older key says the same.
  EXPECT_EQ(read(tiny_model().set("llama.rope.scaling.factor", 4.0f)).rope.freq_scale, 0.25f);
  EXPECT_EQ(read(tiny_model().set("llama.rope.scale_linear", 8.0f)).rope.freq_scale, 0.125f);
  EXPECT_EQ(read(tiny_model().set("llama.rope.scaling.factor", 0.0f)).rope.freq_scale, 1.0f);

  auto none = tiny_model();
  none.set("llama.rope.scaling.type", "none").set("llama.rope.scaling.factor", 4.0f);
  EXPECT_EQ(read(none).rope.freq_scale, 1.0f);
  EXPECT_EQ(read(none).rope.ext_factor, 0.0f);

  auto yarn = tiny_model();
  yarn.set("llama.rope.scaling.type", "yarn").set("llama.rope.scaling.factor", 4.0f);
  yarn.set("llama.rope.scaling.original_context_length", 64u);
  const RopeConfig rope = read(yarn).rope;
  EXPECT_EQ(rope.freq_scale, 0.25f);
  EXPECT_EQ(rope.ext_factor, 1.0f);
  EXPECT_EQ(rope.attn_factor, 1.0f);
  EXPECT_EQ(rope.n_ctx_original, 64);
  EXPECT_EQ(rope.beta_fast, 32.0f);
  EXPECT_EQ(rope.beta_slow, 1.0f);

  // Shrinking instead of stretching has no magnitude correction: what ggml applies is
  // taken back.
  const float factor = 0.5f;
  const RopeConfig shrunk = read(yarn.set("llama.rope.scaling.factor", factor)).rope;
  EXPECT_NEAR(shrunk.attn_factor * (1.0f + 0.1f * std::log(factor)), 1.0f, 1e-6);
}

TEST(Config, MixturesMustMakeSense) {
  const auto mixture = [] { return tiny_model({.architecture = "qwen3moe"}); };
  const auto set = [&](const std::string& key, uint32_t value) {
    GgufBuilder builder = mixture();
    builder.set("qwen3moe." + key, value);
    return builder;
  };
  expect_refused(mixture().remove("qwen3moe.expert_used_count"), ErrorCode::kInvalidFile,
                 "expert_used_count");
  expect_refused(set("expert_used_count", 5), ErrorCode::kInvalidFile, "5 experts of 4");
  expect_refused(set("expert_used_count", 0), ErrorCode::kInvalidFile, "expert_used_count");
  expect_refused(set("expert_count", 1u << 20), ErrorCode::kUnsupported, "too large");
  expect_refused(set("expert_feed_forward_length", 40), ErrorCode::kUnsupported, "multiples of 16");
  expect_refused(set("expert_group_count", 2), ErrorCode::kUnsupported, "groups");
  auto glm = tiny_model({.architecture = "glm4moe"});
  expect_refused(glm.set("glm4moe.expert_gating_func", 9u), ErrorCode::kUnsupported, "way 9");
  expect_refused(glm.set("glm4moe.nextn_predict_layers", 2u).set("glm4moe.block_count", 2u),
                 ErrorCode::kInvalidFile, "no layers");
  auto ernie = tiny_model({.architecture = "ernie4_5-moe"});
  expect_refused(ernie.set("ernie4_5-moe.interleave_moe_layer_step", 2u), ErrorCode::kUnsupported,
                 "between theirs");
}

}  // namespace
}  // namespace forerun
