// Steady sampling allocates nothing.

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "sampling/count_allocations.h"
#include "sampling/sampler.h"

namespace forerun {
namespace {

constexpr int kLargeVocab = 20'000;

SamplingOptions whole_vocabulary() {
  SamplingOptions options;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

int64_t allocations_in_steady_state(const SamplingOptions& options, int n_steps) {
  const Sampler sampler(options, kLargeVocab);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kLargeVocab);
  for (float& x : logits) x = normal(random);
  SamplerScratch scratch;
  SamplerState state = sampler.state_after(std::vector<TokenId>(200, TokenId{5}));
  int64_t before = 0;
  for (int step = 0; step < n_steps + 200; ++step) {
    if (step == 200) before = n_allocations;
    for (int i = 0; i < 20; ++i) logits[random() % kLargeVocab] = normal(random);
    SamplerState branch = state;
    branch.accept(TokenId{step});
    sampler.sample(logits, branch, Position{step}, scratch);
    state.accept(sampler.sample(logits, state, Position{step}, scratch));
  }
  return n_allocations - before;
}

TEST(SamplerAllocations, NoneInSteadyState) {
  std::vector<SamplingOptions> cases(7, whole_vocabulary());
  cases[0] = SamplingOptions{};
  cases[1].temperature = 0;
  cases[2].repeat_penalty = 1.1f;
  cases[2].temperature = 0;
  cases[3] = SamplingOptions{};
  cases[3].frequency_penalty = 0.1f;
  cases[4].top_p = 0.3f;
  cases[5].min_p = 0.1f;
  cases[6].logit_bias = {{TokenId{1}, -std::numeric_limits<float>::infinity()}};
  for (SamplingOptions& options : cases) options.seed = 1;  // or penalties meet another text each time
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_EQ(allocations_in_steady_state(cases[i], 200), 0) << i;
}

// Windows beyond the state's own 64 tokens: an array and its owner every 64 tokens.
TEST(SamplerAllocations, FewForALongWindow) {
  SamplingOptions options;
  options.repeat_penalty = 1.1f;
  options.repeat_last_n = -1;
  options.seed = 1;
  EXPECT_LE(allocations_in_steady_state(options, 640), 2 * 2 * (640 / 64 + 1) + 4);
}

}  // namespace
}  // namespace forerun
