// Caches of other types than F16.
//
// F16 keeps 11 bits of a number, so logits move by some 1e-3 against F32. Q8_0 keeps 8
// bits of the largest of 32 numbers: an error of up to 1/254 of it in every key and
// value, which random weights pass on to the logits undamped. Both bounds are shares of
// the largest logit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "support/engine.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

constexpr double kF16Bound = 0.005;
constexpr double kQ8Bound = 0.05;

std::vector<float> logits_with(const std::shared_ptr<const Model>& model, KvType type) {
  const auto executor = make_executor(model, type);
  const auto tokens = random_tokens(*model, 60, 21);
  const SequenceId sequence = executor->cells().create();
  std::vector<float> logits = read_and_commit(*executor, sequence, std::span(tokens).first(48));
  for (size_t i = 48; i < tokens.size(); ++i) {
    const auto more = read_and_commit(*executor, sequence, std::span(tokens).subspan(i, 1));
    logits.insert(logits.end(), more.begin(), more.end());
  }
  return logits;
}

double largest_of(const std::vector<float>& logits) {
  return std::abs(*std::ranges::max_element(logits, {}, [](float x) { return std::abs(x); }));
}

TEST(KvTypes, StayCloseToF32) {
  for (const char* name : {"tiny-llama-f32", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"}) {
    const auto model = load_model(model_file(name));
    const auto exact = logits_with(model, KvType::kF32);
    const double largest = largest_of(exact);
    const double f16 = max_difference(logits_with(model, KvType::kF16), exact) / largest;
    const double q8 = max_difference(logits_with(model, KvType::kQ8_0), exact) / largest;
    EXPECT_LE(f16, kF16Bound) << name;
    EXPECT_LE(q8, kQ8Bound) << name;
    EXPECT_GT(f16, 0.0) << name << ": the type of the cache has no effect";
    EXPECT_GT(q8, f16) << name;
  }
}

// What our kernels on GPUs make of the types that they serve.
TEST(KvTypes, StayCloseToF16OnAGpu) {
  int n_models = 0;
  for (const char* name : {"tiny-llama-f16", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"}) {
    const auto model = load_model_on_gpu(model_file(name));
    if (model == nullptr || !model->parts().front().gpu->serves(model->config(), KvType::kQ8_0))
      continue;
    ++n_models;
    const auto exact = logits_with(model, KvType::kF16);
    const double largest = largest_of(exact);
    const double q8 = max_difference(logits_with(model, KvType::kQ8_0), exact) / largest;
    EXPECT_LE(q8, kQ8Bound + kF16Bound) << name;
    EXPECT_GT(q8, 0.0) << name << ": the type of the cache has no effect";
  }
  if (n_models == 0) GTEST_SKIP() << "no GPU for our kernels here";
}

}  // namespace
}  // namespace forerun
