// Every rule leaves the distribution of the text as it is, whatever was drafted.

#include <gtest/gtest.h>

#include <string>

#include "verify/small_world.h"

namespace forerun {
namespace {

class ExactRule : public testing::TestWithParam<AcceptRule> {};

TEST_P(ExactRule, LeavesTheDistributionOfTheText) {
  uint64_t seed = 1;
  for (Drafts drafts :
       {Drafts::kChosen, Drafts::kDrawn, Drafts::kDrawnFew, Drafts::kMixed, Drafts::kSpine}) {
    for (const SamplingOptions& options : option_sets()) {
      const int n_vocab = 3 + static_cast<int>(seed % 3);
      World world(seed++, n_vocab, options, drafts);
      EXPECT_LT(deviation(world, verifier_of(GetParam())), 1)
          << "drafts " << static_cast<int>(drafts) << ", vocabulary " << n_vocab;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExactRule, testing::ValuesIn(kAllRules),
                         [](const auto& rule) { return std::string(to_string(rule.param)); });

}  // namespace
}  // namespace forerun
