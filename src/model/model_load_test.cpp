// What a damaged or senseless model does: it loads, or it throws one Error. Models are
// built in the test; nothing here needs weights.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/error.h"
#include "model/executor.h"
#include "model/model.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using test::GgufBuilder;
using test::tiny_model;
using ::testing::HasSubstr;

class ModelLoadTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Model> load(const std::filesystem::path& path) const {
    GgufFile file = GgufFile::open(path);
    architecture_of(file);
    return Model::load(std::move(file), device_);
  }
  std::shared_ptr<const Model> load(const GgufBuilder& builder) const {
    builder.write(path());
    return load(path());
  }
  std::filesystem::path path() const { return dir_.file("model.gguf"); }

  void expect_refused(const GgufBuilder& builder, ErrorCode code, const std::string& what) const {
    try {
      load(builder);
      FAIL() << "loaded";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(what));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }

  // Reads three tokens and returns the logits of the last.
  static std::vector<float> run(std::shared_ptr<const Model> model) {
    Executor executor(std::move(model), {.kv = {.n_cells = kKvGranularity}, .max_rows = 4});
    const SequenceId sequence = executor.cells().create();
    Pass pass;
    std::optional<NodeId> parent;
    for (int i = 0; i < 3; ++i) {
      parent = executor.cells().extend(sequence, parent);
      pass.rows.push_back({.sequence = sequence,
                           .node = parent.value(),
                           .token = TokenId{i % executor.model().config().n_vocab},
                           .logits = i == 2});
    }
    const auto logits = executor.forward(pass).logits(2);
    return {logits.begin(), logits.end()};
  }

  test::TempDir dir_;
  std::shared_ptr<Device> device_ = Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false});
};

std::vector<float> zeros(size_t n) {
  return std::vector<float>(n);
}

TEST_F(ModelLoadTest, EveryArchitectureLoadsAndRuns) {
  for (const Architecture* architecture : architectures()) {
    SCOPED_TRACE(architecture->name());
    const auto model = load(tiny_model({.architecture = std::string(architecture->name())}));
    const auto logits = run(model);
    EXPECT_EQ(logits.size(), 50u);
    EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
  }
}

// Tensors say so, and no metadata that could be relied on.
TEST_F(ModelLoadTest, StableLmWithParallelBlocksIsLibllamas) {
  const auto ours = [&](const GgufBuilder& builder) {
    builder.write(path());
    return architecture_of(GgufFile::open(path())) != nullptr;
  };
  const auto stablelm = [] { return tiny_model({.architecture = "stablelm"}); };
  EXPECT_TRUE(ours(stablelm()));
  auto parallel = stablelm();
  for (const char* layer : {"blk.0.", "blk.1."}) {
    parallel.remove_tensor(std::string(layer) + "ffn_norm.weight");
    parallel.remove_tensor(std::string(layer) + "ffn_norm.bias");
  }
  EXPECT_FALSE(ours(parallel));
  auto normed = stablelm();
  normed.add_floats("blk.0.attn_q_norm.weight", {16, 2}, zeros(32));
  EXPECT_FALSE(ours(normed));
}

TEST_F(ModelLoadTest, UnknownArchitecturesAreRefused) {
  auto builder = tiny_model();
  builder.set("general.architecture", "nobody");
  expect_refused(builder, ErrorCode::kUnsupported, "'nobody' is not supported");
  expect_refused(builder.remove("general.architecture"), ErrorCode::kInvalidFile, "architecture");
  builder.set("general.architecture", 5u);
  expect_refused(builder, ErrorCode::kInvalidFile, "general.architecture");
}

TEST_F(ModelLoadTest, EveryRequiredTensorIsMissedByName) {
  for (const Architecture* architecture : architectures()) {
    const GgufBuilder whole = tiny_model({.architecture = std::string(architecture->name())});
    whole.write(path());
    const GgufFile file = GgufFile::open(path());
    for (const GgufTensor& tensor : file.tensors()) {
      if (tensor.name == "output.weight" || tensor.name.ends_with(".bias")) continue;  // optional
      if (architecture->name() == "gemma4" && tensor.name == "blk.1.attn_v.weight")
        continue;  // likewise
      SCOPED_TRACE(tensor.name);
      GgufBuilder builder = whole;
      builder.remove_tensor(tensor.name);
      expect_refused(builder, ErrorCode::kInvalidFile, tensor.name);
    }
  }
}

TEST_F(ModelLoadTest, EveryTensorOfAWrongShapeIsNamed) {
  for (const Architecture* architecture : architectures()) {
    const GgufBuilder whole = tiny_model({.architecture = std::string(architecture->name())});
    whole.write(path());
    const GgufFile file = GgufFile::open(path());
    const std::string other_table = "per_layer_token_embd.weight";
    const std::string blamed = file.find_tensor(other_table) != nullptr ? other_table : "output.weight";
    for (const GgufTensor& tensor : file.tensors()) {
      SCOPED_TRACE(tensor.name);
      const int64_t n0 = tensor.shape[0];
      const int64_t n1 = tensor.shape[1];
      for (const std::vector<int64_t>& shape :
           {std::vector<int64_t>{n0 + 32, n1}, {n0, n1 + 1}, {n1, n0}, {n0 * n1}, {n0, n1, 2}}) {
        const bool is_its_own = shape[0] == n0 && (shape.size() == 1 || shape[1] == n1) &&
                                (shape.size() < 3 || shape[2] == tensor.shape[2]);
        if (is_its_own) continue;
        // The vocabulary is as large as its embedding says, so another table or the head is blamed.
        const bool is_vocabulary = tensor.name == "token_embd.weight" && shape[0] == n0;
        int64_t n = 1;
        for (const int64_t side : shape) n *= side;
        GgufBuilder builder = whole;
        builder.add_floats(tensor.name, shape, zeros(static_cast<size_t>(n)));
        expect_refused(builder, ErrorCode::kInvalidFile,
                       is_vocabulary && shape.size() == 2 ? blamed : tensor.name);
      }
    }
  }
}

TEST_F(ModelLoadTest, TensorTypesThatAreNoWeightsAreNamed) {
  const auto integers = [](size_t n) { return std::vector<std::byte>(n * sizeof(int32_t)); };
  auto builder = tiny_model();
  builder.add_tensor("blk.1.ffn_up.weight", GGML_TYPE_I32, {32, 48}, integers(32 * 48));
  expect_refused(builder, ErrorCode::kUnsupported, "blk.1.ffn_up.weight");
  builder = tiny_model();
  builder.add_tensor("output_norm.weight", GGML_TYPE_I32, {32}, integers(32));
  expect_refused(builder, ErrorCode::kUnsupported, "output_norm.weight");
  builder = tiny_model();
  builder.add_tensor("token_embd.weight", GGML_TYPE_I32, {32, 50}, integers(32 * 50));
  expect_refused(builder, ErrorCode::kUnsupported, "token_embd.weight");
}

TEST_F(ModelLoadTest, NormsAndBiasesOfOtherTypesAreConverted) {
  auto builder = tiny_model();
  std::vector<ggml_fp16_t> halves(32, ggml_fp32_to_fp16(1.0f));
  const auto bytes = std::as_bytes(std::span(halves));
  builder.add_tensor("output_norm.weight", GGML_TYPE_F16, {32}, {bytes.begin(), bytes.end()});
  auto same = tiny_model();
  same.add_floats("output_norm.weight", {32}, std::vector<float>(32, 1.0f));
  EXPECT_EQ(run(load(builder)), run(load(same)));
}

TEST_F(ModelLoadTest, FilesThatAlignTensorsByOneByteWork) {
  const auto expected = run(load(tiny_model()));
  for (int i = 0; i < 8; ++i) {  // whatever the header's length, some are misaligned
    auto builder = tiny_model();
    builder.set("general.alignment", 1u).set("odd", std::string(static_cast<size_t>(i), 'x'));
    builder.write(path());
    // ggml's writer pads all the same: take the padding before the data out. The
    // tensors' own sizes are multiples of what it pads to.
    auto bytes = test::read_file(path());
    const size_t end = GgufFile::open(path()).tensors().front().offset;
    bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(end),
                bytes.begin() + static_cast<ptrdiff_t>(GGML_PAD(end, GGUF_DEFAULT_ALIGNMENT)));
    test::write_file(path(), bytes);
    EXPECT_EQ(run(load(path())), expected);
  }
}

TEST_F(ModelLoadTest, ExtremeHyperparametersDoNotCrash) {
  for (const float base : {1e-30f, 1.0f, std::numeric_limits<float>::denorm_min(), 3e38f}) {
    auto builder = tiny_model();
    builder.set("llama.rope.freq_base", base).set("llama.rope.scaling.type", "yarn");
    builder.set("llama.rope.scaling.factor", 1e-38f);
    run(load(builder));
  }
  auto builder = tiny_model({.architecture = "gemma3"});
  builder.set("gemma3.attention.sliding_window", 1u << 30);
  builder.set("gemma3.final_logit_softcapping", std::numeric_limits<float>::denorm_min());
  builder.set("gemma3.attention.layer_norm_rms_epsilon", 3e38f);
  run(load(builder));
}

TEST_F(ModelLoadTest, ContextsTooLargeForMemoryAreRefused) {
  const auto model = load(tiny_model({.n_layers = 8, .n_heads = 8, .n_kv_heads = 8, .head_dim = 256}));
  for (const int n_cells : {std::numeric_limits<int>::max(), std::numeric_limits<int>::max() - 255,
                            1 << 30, 1'900'000'000}) {
    try {
      Executor executor(model, {.kv = {.n_cells = n_cells}});
      FAIL() << n_cells << " cells";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
    }
  }
  for (const int n_cells : {0, -1, std::numeric_limits<int>::min()}) {
    try {
      Executor executor(model, {.kv = {.n_cells = n_cells}});
      FAIL() << n_cells << " cells";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    }
  }
}

TEST_F(ModelLoadTest, HeadsTooLargeForAttentionAreRefused) {
  EXPECT_EQ(run(load(tiny_model({.head_dim = 576}))).size(), 50u);
  expect_refused(tiny_model({.head_dim = 578}), ErrorCode::kUnsupported, "heads of size 578");
}

TEST_F(ModelLoadTest, HeadsThatAQuantisedCacheCannotHoldAreRefused) {
  const auto model = load(tiny_model({.head_dim = 24}));
  try {
    Executor executor(model, {.kv = {.n_cells = 256, .type = KvType::kQ8_0}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("q8_0"));
  }
}

// Changes of the header that tend to reach far: fields replaced by extremes, bits
// flipped, bytes swapped between places.
void mutate(std::vector<std::byte>& bytes, size_t n_header, std::mt19937& random) {
  const size_t at = random() % n_header;
  switch (random() % 4) {
    case 0: bytes[at] ^= std::byte{1} << random() % 8; break;
    case 1: std::swap(bytes[at], bytes[random() % n_header]); break;
    case 2: bytes[at] = static_cast<std::byte>(random() % 256); break;
    default: {
      const uint64_t values[] = {0,      1,          2,          0x7f,      0xff,
                                 0xffff, 0x7fffffff, UINT32_MAX, INT64_MAX, UINT64_MAX};
      const size_t width = std::min<size_t>(size_t{1} << random() % 4, n_header - at);
      std::memcpy(bytes.data() + at, &values[random() % std::size(values)], width);
    }
  }
}

TEST_F(ModelLoadTest, MutatedModelsRunOrThrow) {
  int n_ran = 0;
  int n_refused = 0;
  std::mt19937 random(2024);
  for (const Architecture* architecture : architectures()) {
    tiny_model({.architecture = std::string(architecture->name())}).write(path());
    const auto bytes = test::read_file(path());
    const size_t n_header = GgufFile::open(path()).tensors().front().offset;
    for (int i = 0; i < 200; ++i) {
      auto changed = bytes;
      for (auto n = random() % 4 == 0 ? 2 : 1; n > 0; --n) mutate(changed, n_header, random);
      test::write_file(path(), changed);
      try {
        run(load(path()));
        ++n_ran;
      } catch (const Error& error) {
        ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        ++n_refused;
      }
    }
  }
  // Both outcomes must be common for this test to reach all code.
  EXPECT_GT(n_ran, 100);
  EXPECT_GT(n_refused, 1000);
}

TEST_F(ModelLoadTest, EveryHyperparameterTakesEveryExtreme) {
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3", "glm4", "granite", "olmo2",
                                   "starcoder2", "hunyuan-dense", "mistral3", "gpt-oss"}) {
    const GgufBuilder whole = tiny_model({.architecture = architecture});
    whole.write(path());
    for (const std::string& key : GgufFile::open(path()).metadata().keys()) {
      for (const uint32_t value : {0u, 1u, 2u, 3u, 4u, 8u, 31u, 64u, 1u << 16, 1u << 30, UINT32_MAX}) {
        for (const bool as_float : {false, true}) {
          GgufBuilder builder = whole;
          float number = 0;
          std::memcpy(&number, &value, sizeof(number));
          as_float ? builder.set(key, number) : builder.set(key, value);
          try {
            run(load(builder));
          } catch (const Error&) {
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace forerun
