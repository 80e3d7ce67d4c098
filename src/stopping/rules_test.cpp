#include "stopping/rules.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace forerun {
namespace {

TEST(StoppingRules, EveryNameIsMade) {
  for (const StoppingRuleInfo& info : stopping_rules()) {
    StoppingOptions options;
    options.rule = info.name;
    if (info.name == "disco") continue;  // needs a file
    // The method's own rule, and the planner's.
    const bool is_nobodys = info.name == "own" || info.name == "cost";
    EXPECT_EQ(make_stopping_rule(options, {}) == nullptr, is_nobodys) << info.name;
    EXPECT_EQ(options.is_by_cost(), info.name == "cost");
    EXPECT_FALSE(info.summary.empty());
  }
}

TEST(StoppingRules, DiscoNeedsAClassifier) {
  StoppingOptions options;
  options.rule = "disco";
  EXPECT_THROW(make_stopping_rule(options, {}), Error);
  options.classifier = "/nowhere/at/all.gguf";
  EXPECT_THROW(make_stopping_rule(options, {}), Error);
}

TEST(StoppingRules, AnUnknownNameIsAnErrorThatListsThem) {
  StoppingOptions options;
  options.rule = "guess";
  try {
    make_stopping_rule(options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("heuristic"), std::string::npos);
  }
}

}  // namespace
}  // namespace forerun
