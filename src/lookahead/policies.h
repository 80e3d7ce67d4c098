// The stopping rules there are: the one list of their names and options.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "budget/calibration.h"
#include "core/option_visitor.h"
#include "lookahead/lookahead.h"

namespace forerun {

struct LookaheadOptions {
  std::string policy = "own";  // each drafting method's
  int tokens = 5;              // fixed: each time; heuristic: at first
  double threshold = 0.4;      // confidence, and where adaptive and roc begin
  double perplexity = 1.5;

  bool needs_costs() const { return policy == "cost"; }
  // With their full names: "lookahead", "lookahead-tokens", ...
  void describe(OptionVisitor& visitor);
};

// nullptr for "own". Throws Error{kInvalidArgument} for a name that is not there. `costs` are of
// the model that verifies, and are asked for where they are needed.
std::unique_ptr<LookaheadPolicy> make_lookahead(const LookaheadOptions& options,
                                                const std::function<const Calibration&()>& costs);

struct LookaheadInfo {
  std::string_view name;
  std::string_view summary;  // one line for the help
};
std::span<const LookaheadInfo> lookahead_policies();

}  // namespace forerun
