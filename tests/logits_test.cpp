// The same model: logits against libllama's, on every tiny model and both real ones.
//
// The tolerance is zero for every weight type: forerun builds the graph that libllama
// builds (the same ggml operations on the same rows and cells, weights in the same
// layout), and ggml's CPU kernels do not depend on which thread gets which part. Any
// difference means that the computation is not the same one.

#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/engine.h"
#include "support/libllama.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

constexpr double kTolerance = 0.0;
constexpr size_t kPrompt = 40;
constexpr size_t kSteps = 12;

// Reads a prompt in one pass, then token by token, with both; returns the largest
// difference between any of their logits.
double compare(const std::filesystem::path& path, size_t n_prompt, size_t n_steps) {
  const auto model = load_model(path);
  const auto executor = make_executor(model, KvType::kF16, 1024, 512);
  LibLlama reference(path);
  const auto tokens = random_tokens(*model, n_prompt + n_steps, 1);
  const SequenceId sequence = executor->cells().create();
  double worst = 0;
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = at < n_prompt ? std::min<size_t>(n_prompt - at, 512) : 1;
    const auto part = std::span(tokens).subspan(at, n);
    worst = std::max(
        worst, max_difference(read_and_commit(*executor, sequence, part), reference.read(part, n)));
    at += n;
  }
  return worst;
}

TEST(Logits, EveryTinyModelEqualsLibllama) {
  const auto names = tiny_model_names();
  for (const char* required : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"}) {
    ASSERT_NO_THROW(model_file(required)) << "run 'make models'";
  }
  for (const std::string& name : names) {
    EXPECT_LE(compare(model_file(name), kPrompt, kSteps), kTolerance) << name;
  }
}

TEST(Logits, EveryWeightTypeOfGgmlHasATinyModel) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    const ggml_type_traits* traits = ggml_get_type_traits(type);
    const bool computes = traits->blck_size > 0 && traits->to_float != nullptr &&
                          traits->type_name != nullptr &&
                          ggml_get_type_traits_cpu(type)->vec_dot != nullptr;
    if (!computes) continue;
    std::string name = traits->type_name;
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    EXPECT_NO_THROW(model_file("tiny-llama-" + name));
  }
}

TEST(Logits, SmolLm2EqualsLibllama) {
  EXPECT_LE(compare(model_file("smollm2"), kPrompt, kSteps), kTolerance);
}

TEST(Logits, Gemma3EqualsLibllama) {
  EXPECT_LE(compare(model_file("gemma3-270m"), kPrompt, kSteps), kTolerance);
}

// Beyond 64 rows and 512 cells ggml's attention takes other paths, and passes of 512
// rows see cells of earlier ones.
TEST(Logits, LongText) {
  for (const std::string name :
       {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-llama-yarn", "tiny-gemma3"}) {
    EXPECT_LE(compare(model_file(name), 700, 4), kTolerance) << name;
  }
}

}  // namespace
}  // namespace forerun
