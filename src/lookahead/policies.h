// The stopping rules there are: the one list of their names and options.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "budget/calibration.h"
#include "core/option_visitor.h"
#include "lookahead/disco_classifier.h"
#include "lookahead/lookahead.h"

namespace forerun {

struct LookaheadOptions {
  std::string policy = "own";  // each drafting method's
  int tokens = 5;              // fixed: each time; heuristic: at first
  double threshold = 0.4;      // confidence, and where adaptive and roc begin
  double perplexity = 1.5;
  std::string classifier = {};  // disco: its file

  bool needs_costs() const { return policy == "cost"; }
  bool needs_answers() const { return policy == "oracle"; }
  // With their full names: "lookahead", "lookahead-tokens", ...
  void describe(OptionVisitor& visitor);
};

// What rules may use.
struct LookaheadResources {
  std::function<const Calibration&()> costs = {};  // of the model that verifies; asked if needed
  ModelPair models = {};
};

// nullptr for "own". Throws Error: {kInvalidArgument} for a name that is not there, and what
// DiscoClassifier::load() throws.
std::unique_ptr<LookaheadPolicy> make_lookahead(const LookaheadOptions& options,
                                                const LookaheadResources& resources);

struct LookaheadInfo {
  std::string_view name;
  std::string_view summary;  // one line for the help
};
std::span<const LookaheadInfo> lookahead_policies();

}  // namespace forerun
