#include "lookahead/policies.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace forerun {
namespace {

const Calibration kCosts{.curve = CostCurve({{.n_rows = 1, .seconds = 1, .seconds_per_token = 0}}),
                         .blocks = {}};

TEST(Policies, EveryNameIsMade) {
  int n_asked = 0;
  const auto costs = [&]() -> const Calibration& {
    ++n_asked;
    return kCosts;
  };
  for (const LookaheadInfo& info : lookahead_policies()) {
    LookaheadOptions options;
    options.policy = info.name;
    if (info.name == "disco") continue;  // needs a file
    EXPECT_EQ(make_lookahead(options, {.costs = costs}) == nullptr, info.name == "own") << info.name;
    EXPECT_FALSE(info.summary.empty());
  }
  EXPECT_EQ(n_asked, 1) << "measuring takes time: where it is needed only";
}

TEST(Policies, DiscoNeedsAClassifier) {
  LookaheadOptions options;
  options.policy = "disco";
  try {
    make_lookahead(options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--lookahead-classifier"), std::string::npos);
  }
  options.classifier = "/nowhere/at/all.gguf";
  EXPECT_THROW(make_lookahead(options, {}), Error);
}

TEST(Policies, AnUnknownNameIsAnErrorThatListsThem) {
  LookaheadOptions options;
  options.policy = "guess";
  try {
    make_lookahead(options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("heuristic"), std::string::npos);
  }
}

}  // namespace
}  // namespace forerun
