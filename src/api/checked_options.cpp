#include "api/checked_options.h"

#include <charconv>
#include <optional>
#include <string>

#include "core/error.h"
#include "model/kv_cache.h"
#include "model/placement.h"

namespace forerun {
namespace {

AcceptRule parse_accept(const std::string& name) {
  if (const auto rule = parse_accept_rule(name)) return *rule;
  fail(ErrorCode::kInvalidArgument,
       "drafts are accepted by match, target, leviathan or rejection, not by '{}' (--accept)", name);
}

std::optional<int> parse_size(const std::string& text) {
  int size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size >= 1 && size <= kLargestTree ? std::optional(size) : std::nullopt;
}

TreeChoice parse_tree(const std::string& tree) {
  if (tree.empty() || tree == "own" || tree == "auto") return {};
  if (tree == "roofline") return {.is_roofline = true};
  if (const auto size = parse_size(tree)) return {.n_nodes = *size};
  fail(ErrorCode::kInvalidArgument,
       "the size of drafts (--tree) must be auto, roofline, own or a number from 1 to {}, not '{}'",
       kLargestTree, tree);
}

// Several drafters, and drafts that end by cost, need a planner that knows costs.
bool plans_by_cost(const SpeculationOptions& options, const MethodOptions& method_options) {
  const MethodInfo& method = find_method(options.method);
  return options.tree == "auto" || method_options.stopping.is_by_cost() || method.drafts_with_many ||
         (options.tree.empty() && method.plans_by_cost);
}

}  // namespace

SpeculationChoice parse_speculation(const SpeculationOptions& options) {
  SpeculationChoice choice;
  choice.accept = parse_accept(options.accept);
  choice.tree = parse_tree(options.tree);
  for (const auto& [name, value] : options.options) {
    set_method_option(choice.method_options, name, value);
  }
  check_method(options.method, choice.method_options);
  choice.plans_by_cost = plans_by_cost(options, choice.method_options);
  choice.needs_answers = options.method != "none" && choice.method_options.stopping.needs_answers();
  if (choice.needs_answers && choice.accept != AcceptRule::kMatch) {
    fail(ErrorCode::kInvalidArgument,
         "the lookahead oracle knows the text of plain decoding: accept drafts by match");
  }
  return choice;
}

void check_options(const EngineOptions& options) {
  if (options.n_parallel < 1 || options.n_parallel > kMaxParallel) {
    fail(ErrorCode::kInvalidArgument, "between 1 and {} requests can be answered at once, not {}",
         kMaxParallel, options.n_parallel);
  }
  if (options.n_context < 0 || options.n_context > kMaxContext) {
    fail(ErrorCode::kInvalidArgument, "a context holds between 1 and {} tokens, not {}", kMaxContext,
         options.n_context);
  }
  kv_type_named(options.kv_type);
  check_placement(options.placement);
  parse_speculation(options.speculation);
}

void fail_without_answer() {
  fail(ErrorCode::kInvalidArgument,
       "the lookahead oracle needs to know the answer beforehand: it is for 'forerun bench spec'");
}

}  // namespace forerun
