// Logits with 1, 2 and 4 threads: equal bit for bit, also where threads share the
// attention of one row over a long context.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/engine.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

// Reads a prompt in one pass and three more tokens one by one; all their logits.
std::vector<float> logits_with(const std::shared_ptr<const Model>& model, size_t n_prompt, KvType type) {
  const auto executor = make_executor(model, type, 768, 520);
  const auto tokens = random_tokens(*model, n_prompt + 3, 8);
  const SequenceId sequence = executor->cells().create();
  std::vector<float> logits = read_and_commit(*executor, sequence, std::span(tokens).first(n_prompt));
  for (size_t i = n_prompt; i < tokens.size(); ++i) {
    const auto more = read_and_commit(*executor, sequence, std::span(tokens).subspan(i, 1));
    logits.insert(logits.end(), more.begin(), more.end());
  }
  return logits;
}

TEST(Threads, AnyNumberGivesTheSameLogits) {
  for (const std::string name :
       {"tiny-llama", "tiny-llama-f16", "tiny-llama-q4_k", "tiny-llama-q4_0", "tiny-gemma3-pattern"}) {
    const auto one = logits_with(load_model(model_file(name), 1), 80, KvType::kF16);
    for (const int n_threads : {2, 4}) {
      const auto many = logits_with(load_model(model_file(name), n_threads), 80, KvType::kF16);
      EXPECT_EQ(max_difference(many, one), 0.0) << name << ", " << n_threads;
    }
  }
}

TEST(Threads, LongContextsAreSharedWithoutADifference) {
  const auto one = logits_with(load_model(model_file("tiny-llama"), 1), 520, KvType::kF16);
  for (const int n_threads : {2, 4}) {
    const auto model = load_model(model_file("tiny-llama"), n_threads);
    EXPECT_EQ(max_difference(logits_with(model, 520, KvType::kF16), one), 0.0) << n_threads;
  }
}

}  // namespace
}  // namespace forerun
