// The stopping rules there are: the one list of their names and options.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/option_visitor.h"
#include "stopping/disco.h"
#include "stopping/stopping_rule.h"

namespace forerun {

struct StoppingOptions {
  std::string rule = "own";  // each drafting method's
  int tokens = 5;            // fixed: each time; heuristic: at first
  double threshold = 0.4;    // confidence, and where adaptive and roc begin
  double perplexity = 1.5;
  std::string classifier = {};  // disco: its file

  // Whether the planner ends drafts (plan/cost_planner.h): by what they cost.
  bool is_by_cost() const { return rule == "cost"; }
  bool needs_answers() const { return rule == "oracle"; }
  // With their full names: "lookahead", "lookahead-tokens", ...
  void describe(OptionVisitor& visitor);
};

// For drafts of this pair of models. nullptr for "own" and "cost". Throws Error: {kInvalidArgument} for
// a name that is not there, and what DiscoClassifier::load() throws.
std::unique_ptr<StoppingRule> make_stopping_rule(const StoppingOptions& options,
                                                 const ModelPair& models);

struct StoppingRuleInfo {
  std::string_view name;
  std::string_view summary;  // one line for the help
};
std::span<const StoppingRuleInfo> stopping_rules();

}  // namespace forerun
