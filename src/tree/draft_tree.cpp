#include "tree/draft_tree.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace forerun {
namespace {

// Another drafter proposes what `known` is: the better of both counts.
void propose_again(DraftNode& known, const DraftNode& other) {
  known.score = std::max(known.score, other.score);
  known.match_length = std::max(known.match_length, other.match_length);
  known.n_seen = std::max(known.n_seen, other.n_seen);
  known.proposers |= other.proposers;
}

}  // namespace

std::optional<int32_t> DraftTree::find_child(int32_t parent, TokenId token) const {
  for (const int32_t child : children(parent)) {
    if ((*this)[child].token == token) return child;
  }
  return std::nullopt;
}

int32_t DraftTree::add(const DraftNode& node) {
  CHECK(node.parent >= kRoot && node.parent < size());
  CHECK(!find_child(node.parent, node.token));
  const int32_t index = size();
  nodes_.push_back(node);
  links_.push_back({.depth = depth(node.parent) + 1, .children = {}});
  max_depth_ = std::max(max_depth_, links_.back().depth);
  Children& siblings = ends(node.parent);
  if (siblings.count == 0) {
    siblings.first = index;
  } else {
    links_[static_cast<size_t>(siblings.last)].next_sibling = index;
  }
  siblings.last = index;
  ++siblings.count;
  return index;
}

void DraftTree::add_chain(std::span<const TokenId> tokens, DraftNode node, float decay) {
  for (const TokenId token : tokens) {
    node.token = token;
    node.parent = add(node);
    node.score *= decay;
  }
}

void DraftTree::merge(const DraftTree& other, uint8_t proposers) {
  CHECK(!other.has_distributions());
  places_.clear();
  for (DraftNode node : other.nodes()) {
    if (node.parent != kRoot) node.parent = places_[static_cast<size_t>(node.parent)];
    node.proposers = proposers;
    const auto known = find_child(node.parent, node.token);
    places_.push_back(known ? *known : add(node));
    if (known) propose_again(nodes_[static_cast<size_t>(*known)], node);
  }
}

void DraftTree::set_distribution(int32_t parent, Distribution distribution) {
  CHECK(parent >= kRoot && parent < size() && this->distribution(parent) == nullptr);
  distributions_.emplace_back(parent, std::move(distribution));
}

const Distribution* DraftTree::distribution(int32_t parent) const {
  for (const auto& [node, distribution] : distributions_) {
    if (node == parent) return &distribution;
  }
  return nullptr;
}

void DraftTree::prune(const std::vector<bool>& keep) {
  CHECK(keep.size() == nodes_.size());
  const auto nodes = std::exchange(nodes_, {});
  auto distributions = std::exchange(distributions_, {});
  clear();
  std::vector<int32_t> place(nodes.size(), kNone);
  const auto place_of = [&](int32_t node) {
    return node == kRoot ? kRoot : place[static_cast<size_t>(node)];
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!keep[i]) continue;
    CHECK(place_of(nodes[i].parent) != kNone);
    DraftNode node = nodes[i];
    node.parent = place_of(node.parent);
    place[i] = add(node);
  }
  for (auto& [node, distribution] : distributions) {
    if (place_of(node) != kNone) set_distribution(place_of(node), std::move(distribution));
  }
}

void DraftTree::prune_to_chain() {
  std::vector<double> scores;
  for (const DraftNode& node : nodes_) scores.push_back(node.score);
  prune(likeliest_path(scores));
}

int32_t DraftTree::likeliest_child(int32_t node, std::span<const double> chances) const {
  int32_t best = first_child(node);
  for (const int32_t child : children(node)) {
    if (chances[static_cast<size_t>(child)] > chances[static_cast<size_t>(best)]) best = child;
  }
  return best;
}

std::vector<bool> DraftTree::likeliest_path(std::span<const double> chances) const {
  CHECK(chances.size() == nodes_.size());
  std::vector<bool> path(nodes_.size(), false);
  for (int32_t node = kRoot; (node = likeliest_child(node, chances)) != kNone;) {
    path[static_cast<size_t>(node)] = true;
  }
  return path;
}

void DraftTree::clear() {
  nodes_.clear();
  links_.clear();
  root_ = {};
  max_depth_ = 0;
  distributions_.clear();
}

}  // namespace forerun
