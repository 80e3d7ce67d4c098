// The default rule allocates nothing in steady state.

#include <gtest/gtest.h>

#include <vector>

#include "sampling/count_allocations.h"
#include "verify/hashed_model.h"

namespace forerun {
namespace {

TEST(VerifyAllocations, NoneInSteadyState) {
  const int n_vocab = 60;
  const std::vector<float> logits = HashedModel(1, n_vocab, 4.0f).logits({});
  std::vector<SamplingOptions> cases(3);
  cases[1].temperature = 0;
  cases[2].repeat_penalty = 1.1f;
  for (SamplingOptions& options : cases) {
    options.seed = 1;
    const Sampler sampler(options, n_vocab);
    DraftTree tree;  // every text of two tokens
    for (int32_t parent = kRoot; parent < n_vocab; ++parent) {
      for (int32_t token = 0; token < n_vocab; ++token)
        tree.add({.token = TokenId{token}, .parent = parent});
    }
    const SamplerState state = sampler.state_after({});
    SamplerScratch scratch;
    Verdict verdict;
    int64_t before = 0;
    size_t n_accepted = 0;
    for (int step = 0; step < 200; ++step) {
      if (step == 100) before = n_allocations;
      const VerifyInput input{tree, [&](int32_t) { return std::span(logits); }, sampler, state,
                              Position{step}};
      verify(input, AcceptRule::kMatch, scratch, verdict);
      n_accepted += verdict.path.size();
    }
    EXPECT_EQ(n_allocations - before, 0);
    EXPECT_EQ(n_accepted, 400u);
  }
}

}  // namespace
}  // namespace forerun
