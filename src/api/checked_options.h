// What an engine's options say, checked without a model: what makes no sense is refused before
// anything is loaded or measured. What files hold that they name is checked later.
#pragma once

#include <forerun/engine.h>

#include "draft/methods.h"
#include "plan/planner.h"
#include "verify/verify.h"

namespace forerun {

inline constexpr int kMaxContext = 1 << 24;
inline constexpr int kMaxParallel = 256;

// How many drafted tokens are verified at once, at most.
struct TreeChoice {
  bool is_roofline = false;  // what the hardware verifies for nothing
  int n_nodes = kLargestTree;
};

// What SpeculationOptions say beside the name of the method and the datastores.
struct SpeculationChoice {
  AcceptRule accept = AcceptRule::kMatch;
  TreeChoice tree = {};
  bool plans_by_cost = false;
  MethodOptions method_options = {};
  bool needs_answers = false;  // requests must say theirs
};

// Throws Error{kInvalidArgument}.
SpeculationChoice parse_speculation(const SpeculationOptions& options);

// Throws Error{kInvalidArgument} if an engine with these options makes no sense.
void check_options(const EngineOptions& options);

// For requests that do not say an answer which drafts need.
[[noreturn]] void fail_without_answer();

}  // namespace forerun
