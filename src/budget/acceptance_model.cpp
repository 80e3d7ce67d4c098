#include "budget/acceptance_model.h"

#include <algorithm>

namespace forerun {
namespace {

// Observations count for about this many later ones.
constexpr double kMemory = 400;
constexpr double kRequestMemory = 24;
// How many observations the estimate of a wider group is worth.
constexpr double kPriorWeight = 4;
constexpr double kRequestPriorWeight = 3;
// Nothing is certain: without this a lucky streak would draft to the limit.
constexpr double kMaxChance = 0.98;
// Until something is known, drafters' scores are taken for this much too high.
constexpr double kScoreTrust = 0.8;

// What the drafter makes of a node, if the text comes to its parent.
double relative_score(const DraftTree& tree, int32_t node) {
  const int32_t parent = tree[node].parent;
  const double above = parent == kRoot ? 1.0 : static_cast<double>(tree[parent].score);
  return above > 0 ? std::clamp(static_cast<double>(tree[node].score) / above, 0.0, 1.0) : 0.0;
}

}  // namespace

double RequestAcceptance::factor() const {
  return (accepted_ + kRequestPriorWeight) / (expected_ + kRequestPriorWeight);
}

void AcceptanceModel::Cell::add(bool accepted) {
  n_accepted = n_accepted * (1 - 1 / kMemory) + (accepted ? 1 : 0);
  n_tested = n_tested * (1 - 1 / kMemory) + 1;
}

AcceptanceModel::Place AcceptanceModel::place_of(const DraftTree& tree, int32_t node) {
  const auto score = static_cast<int>(relative_score(tree, node) * kScores);
  // Every token that the text took since lengthens the match.
  const int match = tree[node].match_length + tree.depth(node) - 1;
  return {.score = static_cast<size_t>(std::min(score, kScores - 1)),
          .match = static_cast<size_t>(std::clamp(match, 0, kMatches - 1))};
}

double AcceptanceModel::conditional(const DraftTree& tree, int32_t node) const {
  const SourceTable& table = tables_[table_of(tree[node])];
  const Place place = place_of(tree, node);
  const Cell& wide = table.by_score[place.score];
  const Cell& narrow = table.by_match[place.match][place.score];
  const double guess = kScoreTrust * relative_score(tree, node);
  const double known = (wide.n_accepted + kPriorWeight * guess) / (wide.n_tested + kPriorWeight);
  return (narrow.n_accepted + kPriorWeight * known) / (narrow.n_tested + kPriorWeight);
}

void AcceptanceModel::learn(const DraftTree& tree, int32_t node, bool accepted) {
  SourceTable& table = tables_[table_of(tree[node])];
  const Place place = place_of(tree, node);
  table.by_score[place.score].add(accepted);
  table.by_match[place.match][place.score].add(accepted);
}

void AcceptanceModel::estimate(const DraftTree& tree, const RequestAcceptance& request,
                               std::vector<double>& chances) const {
  const double factor = request.factor();
  chances.resize(static_cast<size_t>(tree.size()));
  for (int32_t node = 0; node < tree.size(); ++node) {
    const int32_t parent = tree[node].parent;
    const double above = parent == kRoot ? 1.0 : chances[static_cast<size_t>(parent)];
    chances[static_cast<size_t>(node)] = above * std::min(conditional(tree, node) * factor, kMaxChance);
  }
}

void AcceptanceModel::propose(const DraftTree& tree, RequestAcceptance& request) {
  if (tree.empty()) return;  // what was proposed before may still come
  request.tree_ = tree;
  request.at_ = kRoot;
}

void AcceptanceModel::observe(std::span<const TokenId> tokens, RequestAcceptance& request) {
  for (const TokenId token : tokens) {
    if (request.at_ == RequestAcceptance::kNowhere) return;
    const DraftTree& tree = request.tree_;
    int32_t taken = RequestAcceptance::kNowhere;
    double expected = 0;
    for (int32_t child = tree.first_child(request.at_); child != DraftTree::kNone;
         child = tree.next_sibling(child)) {
      if (tree[child].token == token) taken = child;
      expected += conditional(tree, child);
      learn(tree, child, tree[child].token == token);
    }
    if (tree.n_children(request.at_) > 0) {
      const bool accepted = taken != RequestAcceptance::kNowhere;
      request.accepted_ = request.accepted_ * (1 - 1 / kRequestMemory) + (accepted ? 1 : 0);
      request.expected_ = request.expected_ * (1 - 1 / kRequestMemory) + std::min(expected, 1.0);
    }
    request.at_ = taken;
  }
}

}  // namespace forerun
