// Logits that stay on a GPU: what our kernels say of each row is what the CPU finds in all its logits,
// the tokens drawn are the same, and all logits can be had in any order and from any thread. On the CPU
// they are read where they are.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sampling/sampler.h"
#include "support/engine.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

// Row i hangs below the row before it; which rows mostly need the best is up to `best_do`.
Pass pass_over(Executor& executor, SequenceId sequence, std::span<const TokenId> tokens,
               const std::vector<bool>& asks, const std::vector<bool>& best_do) {
  Pass pass;
  std::optional<NodeId> node;
  for (size_t i = 0; i < tokens.size(); ++i) {
    node = executor.cells().extend(sequence, node);
    pass.rows.push_back({.sequence = sequence,
                         .node = node.value(),
                         .token = tokens[i],
                         .logits = asks[i],
                         .best_do = best_do[i]});
  }
  return pass;
}

std::vector<SamplingOptions> usual_options() {
  std::vector<SamplingOptions> all(6);
  all[1].temperature = 0;
  all[2].repeat_penalty = 1.2f;
  all[3].top_k = 0;  // needs all
  all[4].top_k = 0;
  all[4].top_p = 1;
  all[5].temperature = 0;
  all[5].presence_penalty = 2;
  for (SamplingOptions& options : all) options.seed = 3;
  return all;
}

void expect_same_best(const LogitsView& view, std::span<const float> all) {
  SelectionScratch scratch;
  std::vector<ScoredToken> expected;
  select_top(all, kBestLogits, scratch, expected);
  ASSERT_EQ(view.best().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(view.best()[i].token, expected[i].token) << "place " << i;
    ASSERT_EQ(view.best()[i].logit, expected[i].logit) << "place " << i;
  }
  const SoftmaxSums sums = softmax_sums(all);
  EXPECT_EQ(view.sums().max, sums.max);
  EXPECT_NEAR(view.sums().total, sums.total, 1e-5 * sums.total);
  EXPECT_NEAR(view.sums().entropy, sums.entropy, 1e-4);
}

void expect_same_draws(const LogitsView& view, std::span<const float> all,
                       std::span<const TokenId> text) {
  for (const SamplingOptions& options : usual_options()) {
    const Sampler sampler(options, static_cast<int>(all.size()));
    const SamplerState state = sampler.state_after(text);
    SamplerScratch scratch;
    for (const int position : {5, 6, 7}) {
      ASSERT_EQ(sampler.sample(view, state, Position{position}, scratch),
                sampler.sample(all, state, Position{position}, scratch));
    }
  }
}

TEST(LogitsOnAGpu, AreSummedUpAsTheCpuDoes) {
  if (load_model_on_gpu(model_file("tiny-llama-f16")) == nullptr)
    GTEST_SKIP() << "no GPU for our kernels here";
  for (const std::string& name : tiny_and_real_model_names()) {
    const auto model = load_model_on_gpu(model_file(name));
    if (model == nullptr) continue;
    const auto executor = make_executor(model);
    const SequenceId sequence = executor->cells().create();
    const auto text = random_tokens(*model, 20, 4);
    read_and_commit(*executor, sequence, text);
    std::mt19937 random(5);
    for (const size_t n : {1u, 2u, 5u, 17u, 64u, 70u}) {
      const auto tokens = random_tokens(*model, n, static_cast<uint32_t>(n));
      std::vector<bool> asks(n), best_do(n);
      for (size_t i = 0; i < n; ++i) {
        asks[i] = i + 1 == n || random() % 4 != 0;
        best_do[i] = random() % 2 == 0;
      }
      const auto forward = [&](const std::vector<bool>& best) -> const PassResult& {
        executor->cells().rollback(sequence);
        return executor->forward(pass_over(*executor, sequence, tokens, asks, best));
      };
      std::vector<std::vector<float>> expected(n);
      const PassResult& whole = forward(std::vector<bool>(n));
      for (size_t i = 0; i < n; ++i) {
        if (asks[i]) expected[i].assign(whole.logits(i).begin(), whole.logits(i).end());
      }
      const PassResult& result = forward(best_do);
      for (size_t i = 0; i < n; ++i) {
        if (!asks[i]) continue;
        const std::string where = name + ", row " + std::to_string(i) + " of " + std::to_string(n);
        ASSERT_NO_FATAL_FAILURE(expect_same_best(result.view(i), expected[i])) << where;
        if (i % 8 != 0) continue;
        ASSERT_NO_FATAL_FAILURE(expect_same_draws(result.view(i), expected[i], text)) << where;
      }
      std::vector<char> is_equal(n, 1);
      model->device().share_out(n, [&](int /*thread*/, size_t thing) {
        const size_t i = 11 * thing % n;
        if (asks[i]) is_equal[i] = std::ranges::equal(result.logits(i), expected[i]) ? 1 : 0;
      });
      EXPECT_EQ(std::ranges::count(is_equal, 1), static_cast<std::ptrdiff_t>(n)) << name << ", " << n;
    }
  }
}

TEST(LogitsOnACpu, AreAllThere) {
  const auto model = load_model(model_file("tiny-llama-f16"));
  const auto executor = make_executor(model);
  const SequenceId sequence = executor->cells().create();
  const auto tokens = random_tokens(*model, 3, 4);
  const PassResult& result = executor->forward(
      pass_over(*executor, sequence, tokens, {true, false, true}, {true, false, false}));
  for (const size_t row : {0u, 2u}) {
    const LogitsView view = result.view(row);
    EXPECT_TRUE(view.best().empty());
    EXPECT_EQ(view.all().data(), result.logits(row).data());
    EXPECT_EQ(view.n_vocab(), static_cast<size_t>(model->config().n_vocab));
    ASSERT_NO_FATAL_FAILURE(expect_same_draws(view, result.logits(row), tokens));
  }
}

}  // namespace
}  // namespace forerun
