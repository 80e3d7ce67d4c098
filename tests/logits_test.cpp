// The same model: logits against libllama's, on every tiny model and both real ones.
//
// Both multiply the same quantised weights with the same 8-bit activations, but round
// differently on the way: ggml's attention works with F16 queries and adds values up in
// F16, its GELU is a table of F16 numbers, and for K-quants its activations share one
// scale per 256 numbers where ours have one per 32. Ours is the nearer to exact
// arithmetic in each.

#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "support/both_engines.h"
#include "support/distance.h"
#include "support/engine.h"
#include "support/f32_copy.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

constexpr Distance kRealBound{.worst = 0.1, .mean = 0.01};
constexpr const char* kText =
    "The history of the Roman Empire is long. It began with the founding of the city and ended, many "
    "say, when the last emperor of the West was deposed in 476.";
constexpr size_t kTokensBefore = 40;
constexpr size_t kTokensRead = 12;

void expect_tiny_close(const std::string& name, size_t n_prompt, size_t n_steps, int n_context = 1024) {
  const auto model = load_model(model_file(name));
  EXPECT_TRUE(model->has_blocks()) << name << " is libllama's own";
  const auto executor = make_executor(model, KvType::kF16, n_context, 512);
  LibLlama reference(model_file(name), {.n_ctx = n_context, .n_threads = 1});
  const auto tokens = random_tokens(*model, n_prompt + n_steps, 1);
  const BothLogits logits = read_with_both(*executor, reference, tokens, n_prompt);
  EXPECT_TRUE(are_near(*model, logits.ours, logits.theirs)) << name;
}

BothLogits read_text_with_both(const std::string& name) {
  const auto executor = make_executor(load_model(model_file(name)));
  LibLlama reference(model_file(name));
  const auto tokens = reference.tokenize(kText, true);
  return read_with_both(*executor, reference, tokens, tokens.size() / 2);
}

TEST(Logits, EveryTinyModelEqualsLibllama) {
  const auto names = tiny_model_names();
  for (const char* required : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"}) {
    ASSERT_NO_THROW(model_file(required)) << "run 'make models'";
  }
  for (const std::string& name : names) {
    expect_tiny_close(name, kTokensBefore, kTokensRead);
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

TEST(Logits, RealModelsEqualLibllama) {
  for (const char* name : {"smollm2", "gemma3-270m"}) {
    const BothLogits logits = read_text_with_both(name);
    const Distance found = distance(logits.ours, logits.theirs);
    EXPECT_TRUE(found.within(kRealBound)) << name << ": " << found;
  }
}

// What exact arithmetic makes of the same weights: they and everything else in F32.
TEST(Logits, AreAsNearToExactArithmeticAsLibllamas) {
  const BothLogits logits = read_text_with_both("smollm2");
  const F32Copy exact("smollm2");
  const auto tokens = LibLlama(model_file("smollm2")).tokenize(kText, true);
  const auto truth = read_and_commit(*exact.executor, exact.executor->cells().create(), tokens);
  const Distance ours = distance(logits.ours, truth);
  const Distance theirs = distance(logits.theirs, truth);
  EXPECT_LE(ours.mean, 1.1 * theirs.mean) << "ours: " << ours << ", libllama's: " << theirs;
}

// Passes of 512 rows see cells of earlier ones, and rows see many chunks.
TEST(Logits, LongText) {
  for (const std::string name : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-llama-yarn",
                                 "tiny-gemma3", "tiny-gemma4-e", "tiny-gpt-oss"}) {
    expect_tiny_close(name, 700, 4);
  }
}

// Its layers see runs of 8192 tokens, and queries of others grow with each.
TEST(Logits, MoreThanARunOfLlama4) {
  expect_tiny_close("tiny-llama4", 8200, 2, 8448);
}

}  // namespace
}  // namespace forerun
