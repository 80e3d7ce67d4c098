#include "api/checked_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace forerun {
namespace {

using Change = std::function<void(EngineOptions&)>;

// An engine whose model does not exist.
EngineOptions without_model() {
  EngineOptions options;
  options.model = "/nowhere/model.gguf";
  return options;
}

std::string message_of(const EngineOptions& options) {
  try {
    Engine engine(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CheckedOptions, NonsenseIsRefusedBeforeAModelIsLoaded) {
  const std::pair<const char*, Change> cases[] = {
      {"requests can be answered at once", [](auto& o) { o.n_parallel = 0; }},
      {"requests can be answered at once", [](auto& o) { o.n_parallel = kMaxParallel + 1; }},
      {"a context holds", [](auto& o) { o.n_context = -1; }},
      {"a context holds", [](auto& o) { o.n_context = kMaxContext + 1; }},
      {"--kv-type", [](auto& o) { o.kv_type = "q3"; }},
      {"no drafting method 'eagle'", [](auto& o) { o.speculation.method = "eagle"; }},
      {"not by 'luck'", [](auto& o) { o.speculation.accept = "luck"; }},
      {"--tree", [](auto& o) { o.speculation.tree = "tall"; }},
      {"--tree", [](auto& o) { o.speculation.tree = "0"; }},
      {"--tree", [](auto& o) { o.speculation.tree = "129"; }},
      {"--tree",
       [](auto& o) {
         o.speculation.method = "none";
         o.speculation.tree = "8x";
       }},
      {"pld-ngram is 999", [](auto& o) { o.speculation.options["pld-ngram"] = "999"; }},
      {"no drafting option", [](auto& o) { o.speculation.options["ngram"] = "3"; }},
      {"lookahead is 'guess'", [](auto& o) { o.speculation.options["lookahead"] = "guess"; }},
      {"--draft-model", [](auto& o) { o.speculation.method = "draft"; }},
      {"accept drafts by match",
       [](auto& o) {
         o.speculation.options["lookahead"] = "oracle";
         o.speculation.accept = "target";
       }},
  };
  for (const auto& [expected, change] : cases) {
    EngineOptions options = without_model();
    change(options);
    EXPECT_THAT(message_of(options), testing::HasSubstr(expected));
  }
  EXPECT_THAT(message_of(without_model()), testing::HasSubstr("/nowhere/model.gguf"));
}

TEST(CheckedOptions, TreesAreBoundedAsTheUserSays) {
  const auto tree_of = [](const char* tree) { return parse_speculation({.tree = tree}).tree; };
  for (const char* unbounded : {"", "auto", "own"}) {
    EXPECT_EQ(tree_of(unbounded).n_nodes, kLargestTree) << unbounded;
    EXPECT_FALSE(tree_of(unbounded).is_roofline) << unbounded;
  }
  EXPECT_TRUE(tree_of("roofline").is_roofline);
  EXPECT_EQ(tree_of("17").n_nodes, 17);
}

TEST(CheckedOptions, CostsPlanWhereMethodsOrUsersAskForIt) {
  const auto by_cost = [](SpeculationOptions options) {
    return parse_speculation(options).plans_by_cost;
  };
  EXPECT_TRUE(by_cost({.method = "auto"}));
  EXPECT_TRUE(by_cost({.method = "auto", .tree = "own"}));
  EXPECT_TRUE(by_cost({.method = "sssd"}));
  EXPECT_FALSE(by_cost({.method = "sssd", .tree = "own"}));
  EXPECT_FALSE(by_cost({.method = "swift"}));
  EXPECT_TRUE(by_cost({.method = "swift", .tree = "auto"}));
  EXPECT_TRUE(by_cost({.method = "swift", .options = {{"lookahead", "cost"}}}));
}

}  // namespace
}  // namespace forerun
