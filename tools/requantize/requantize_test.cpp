#include "requantize.h"

#include <ggml-cpp.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "gguf/gguf_file.h"

namespace forerun {
namespace {

constexpr int64_t kRowLength = 512;
constexpr int64_t kRows = 3;

class RequantizeTest : public ::testing::Test {
 protected:
  RequantizeTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("requantize_test." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    write_input(kRowLength);
  }
  ~RequantizeTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path in() const { return folder_ / "in.gguf"; }
  std::filesystem::path out() const { return folder_ / "out.gguf"; }

  // A head, one matrix, one vector and the biases of experts, of normally distributed numbers.
  void write_input(int64_t row_length) {
    const ggml_init_params params{.mem_size = 1 << 20, .mem_buffer = nullptr, .no_alloc = false};
    const ggml_context_ptr tensors(ggml_init(params));
    const gguf_context_ptr gguf(gguf_init_empty());
    gguf_set_val_str(gguf.get(), "general.architecture", "llama");
    gguf_set_val_u32(gguf.get(), "general.file_type", 0);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const char* name :
         {"token_embd.weight", "blk.0.ffn_up.weight", "output_norm.weight", "blk.0.ffn_up_exps.bias"}) {
      const bool is_vector = std::string(name) == "output_norm.weight";
      ggml_tensor* tensor =
          ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F32, row_length, is_vector ? 1 : kRows);
      ggml_set_name(tensor, name);
      auto* values = static_cast<float*>(tensor->data);
      for (int64_t i = 0; i < ggml_nelements(tensor); ++i) values[i] = normal(random);
      gguf_add_tensor(gguf.get(), tensor);
    }
    ASSERT_TRUE(gguf_write_to_file(gguf.get(), in().c_str(), false));
  }

  std::filesystem::path folder_;
};

std::vector<float> values_of(const GgufFile& file, const std::string& name) {
  const GgufTensor* tensor = file.find_tensor(name);
  std::vector<float> values(static_cast<size_t>(tensor->shape[0] * tensor->shape[1]));
  if (tensor->type == GGML_TYPE_F32) {
    std::memcpy(values.data(), tensor->data, tensor->n_bytes);
  } else {
    ggml_get_type_traits(tensor->type)
        ->to_float(tensor->data, values.data(), static_cast<int64_t>(values.size()));
  }
  return values;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    size += std::pow(a[i], 2);
  }
  return std::sqrt(difference / size);
}

struct TypeCase {
  const char* name;
  double largest_error;  // of normally distributed weights, relative
};

class EveryType : public RequantizeTest, public ::testing::WithParamInterface<TypeCase> {};

TEST_P(EveryType, StoresMatricesNearTheirValuesAndVectorsAsTheyAre) {
  const ggml_type type = parse_weight_type(GetParam().name);
  requantize(in(), out(), {.type = type});

  const GgufFile before = GgufFile::open(in());
  const GgufFile after = GgufFile::open(out());
  ASSERT_EQ(after.tensors().size(), before.tensors().size());
  for (const char* name : {"token_embd.weight", "blk.0.ffn_up.weight"}) {
    EXPECT_EQ(after.find_tensor(name)->type, type);
    EXPECT_LE(relative_error(values_of(before, name), values_of(after, name)), GetParam().largest_error);
  }
  for (const char* name : {"output_norm.weight", "blk.0.ffn_up_exps.bias"}) {
    EXPECT_EQ(after.find_tensor(name)->type, GGML_TYPE_F32);
    EXPECT_EQ(values_of(before, name), values_of(after, name));
  }
  EXPECT_EQ(after.metadata().get_string("general.architecture"), "llama");
  EXPECT_FALSE(after.metadata().has("general.file_type"));
}

// The search tables of IQ1 and the larger IQ2 types take ggml many seconds to make;
// the tiny models cover those types.
INSTANTIATE_TEST_SUITE_P(
    Types, EveryType,
    ::testing::Values(TypeCase{"F32", 0}, TypeCase{"F16", 1e-3}, TypeCase{"bf16", 5e-3},
                      TypeCase{"q4_0", 0.12}, TypeCase{"q4_1", 0.1}, TypeCase{"q5_0", 0.06},
                      TypeCase{"q5_1", 0.05}, TypeCase{"q8_0", 0.01}, TypeCase{"q2_K", 0.4},
                      TypeCase{"q3_K", 0.2}, TypeCase{"Q4_K", 0.1}, TypeCase{"q5_K", 0.05},
                      TypeCase{"q6_K", 0.03}, TypeCase{"iq2_xxs", 0.6}, TypeCase{"iq3_xxs", 0.3},
                      TypeCase{"iq3_s", 0.25}, TypeCase{"iq4_nl", 0.1}, TypeCase{"iq4_xs", 0.1},
                      TypeCase{"tq1_0", 0.9}, TypeCase{"tq2_0", 0.9}, TypeCase{"mxfp4", 0.15},
                      TypeCase{"nvfp4", 0.15}, TypeCase{"q1_0", 0.9}, TypeCase{"q2_0", 0.9}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(RequantizeTest, KeepsTheHeadWhenAsked) {
  requantize(in(), out(), {.type = GGML_TYPE_Q4_K, .keep_head = true});
  const GgufFile after = GgufFile::open(out());
  EXPECT_EQ(after.find_tensor("token_embd.weight")->type, GGML_TYPE_F32);
  EXPECT_EQ(after.find_tensor("blk.0.ffn_up.weight")->type, GGML_TYPE_Q4_K);
}

TEST_F(RequantizeTest, RefusesRowsThatDoNotFitTheType) {
  write_input(96);
  EXPECT_THROW(requantize(in(), out(), {.type = GGML_TYPE_Q4_K}), Error);
  EXPECT_FALSE(std::filesystem::exists(out()));
  EXPECT_NO_THROW(requantize(in(), out(), {.type = GGML_TYPE_Q4_0}));
}

TEST_F(RequantizeTest, FailedWriteLeavesADeviceAlone) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  // Through a link of ours, so that a mistake removes the link and not the device.
  std::filesystem::create_symlink("/dev/full", out());
  EXPECT_THROW(requantize(in(), out(), {.type = GGML_TYPE_Q8_0}), Error);
  EXPECT_TRUE(std::filesystem::is_symlink(out()));
}

TEST_F(RequantizeTest, RefusesToOverwriteItsInput) {
  EXPECT_THROW(requantize(in(), in(), {.type = GGML_TYPE_Q8_0}), Error);
  EXPECT_NO_THROW(GgufFile::open(in()));
}

TEST_F(RequantizeTest, RefusesUnknownAndActivationTypes) {
  EXPECT_THROW(parse_weight_type("q9"), Error);
  EXPECT_THROW(parse_weight_type("q8_K"), Error);
  EXPECT_THROW(parse_weight_type("i32"), Error);
}

}  // namespace
}  // namespace forerun
