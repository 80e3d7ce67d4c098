// Which part of a draft the model agrees with.
//
// verify() is pure: a tree, the model's logits behind each of its nodes, and the sampler
// in; the accepted path and the token after it out. It walks down from the root: at each
// node the rule draws the model's token, and while a child has that token the walk goes on
// there. Every rule leaves the distribution of the text as it is without drafts (proofs
// and conditions are in rules.cpp), and the default leaves the text itself.
//
// Thread-safe: each call touches only its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "sampling/sampler.h"
#include "tree/draft_tree.h"

namespace forerun {

enum class AcceptRule {
  // Draw the model's token as plain decoding would. Any drafter; the same text.
  kMatch,
  // One uniform number per node; walk its children, adding up the model's probabilities,
  // until the sum exceeds it (SGLang's "target only" walk). Any drafter.
  kTargetOnly,
  // Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), of each first child alone.
  kLeviathan,
  // Recursive rejection sampling without replacement (Jeon et al. 2024, arXiv 2402.14160;
  // what SWIFT intends), of all children in their order.
  kRejection,
};
std::optional<AcceptRule> parse_accept_rule(std::string_view name);  // "match", "target",
                                                                     // "leviathan", "rejection"
std::string_view to_string(AcceptRule rule);
// Whether it compares the model's distributions with those that drafts were drawn from.
bool compares_distributions(AcceptRule rule);

struct Verdict {
  std::vector<int32_t> path;  // the accepted nodes, from a child of the root on; may be empty
  // The nodes that were compared with what the model says: the children of the root and of
  // every accepted node. Of all others nobody knows whether the model agrees.
  std::vector<int32_t> tested;
  TokenId next{};  // the model's token behind the path
};

struct VerifyInput {
  const DraftTree& tree;
  // The model's logits behind a node, or behind the text (kRoot). Asked for the root and
  // for each accepted node once, in the order of the path; read before the next is asked
  // for.
  std::function<LogitsView(int32_t node)> logits;
  const Sampler& sampler;
  const SamplerState& state;  // after the text
  Position position;          // of the token after the text
};

// `verdict` is overwritten; its memory is reused. kMatch allocates nothing in steady state.
// Throws what Sampler::distribution throws; the verdict is then unspecified.
void verify(const VerifyInput& input, AcceptRule rule, SamplerScratch& scratch, Verdict& verdict);

}  // namespace forerun
