#include "verify/verify.h"

#include <array>

#include "verify/rules.h"

namespace forerun {
namespace {

constexpr std::array kRules = {AcceptRule::kMatch, AcceptRule::kTargetOnly, AcceptRule::kLeviathan,
                               AcceptRule::kRejection};

}  // namespace

std::string_view to_string(AcceptRule rule) {
  switch (rule) {
    case AcceptRule::kMatch: return "match";
    case AcceptRule::kTargetOnly: return "target";
    case AcceptRule::kLeviathan: return "leviathan";
    case AcceptRule::kRejection: return "rejection";
  }
  return "";
}

bool compares_distributions(AcceptRule rule) {
  return rule == AcceptRule::kLeviathan || rule == AcceptRule::kRejection;
}

std::optional<AcceptRule> parse_accept_rule(std::string_view name) {
  for (AcceptRule rule : kRules) {
    if (to_string(rule) == name) return rule;
  }
  return std::nullopt;
}

void verify(const VerifyInput& input, AcceptRule rule, SamplerScratch& scratch, Verdict& verdict) {
  RuleDraw rule_draw(rule, input.sampler);
  verdict.path.clear();
  verdict.tested.clear();
  SamplerState state = input.state;
  Position position = input.position;
  for (int32_t node = kRoot;;) {
    const Distribution& p = input.sampler.distribution(input.logits(node), state, scratch);
    const TokenId token = rule_draw.draw(p, input.tree, node, position);
    for (const int32_t tested : input.tree.children(node)) verdict.tested.push_back(tested);
    const std::optional<int32_t> child = input.tree.find_child(node, token);
    if (!child) {
      verdict.next = token;
      return;
    }
    verdict.path.push_back(*child);
    state.accept(token);
    position = position + 1;
    node = *child;
  }
}

}  // namespace forerun
