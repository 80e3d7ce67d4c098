#include "draft/text/suffix_tree.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/check.h"

namespace forerun {

SuffixTree::SuffixTree(int depth) : depth_(depth) {
  CHECK(depth > 0);
}

void SuffixTree::append(TokenId token) {
  tokens_.push_back(token);
  ++end_;
  if (end_ - settled_ == depth_) settle(settled_ + 1);
}

void SuffixTree::end_text() {
  if (end_ == open_begin_) return;
  settle(end_);
  texts_.push_back(end_);
  open_begin_ = end_;
}

// Places before `begin` enter the tree.
void SuffixTree::settle(int64_t begin) {
  for (; settled_ < begin; ++settled_) insert(settled_, std::min(settled_ + depth_, end_));
}

void SuffixTree::drop_oldest_text() {
  CHECK(!texts_.empty());
  const int64_t end = texts_.front();
  texts_.pop_front();
  for (; oldest_ < end; ++oldest_) remove(oldest_, std::min(oldest_ + depth_, end));
  // Moving the rest pays once as much has left as stays.
  if (oldest_ - base_ > end_ - oldest_) {
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(oldest_ - base_));
    base_ = oldest_;
  }
}

void SuffixTree::insert(int64_t begin, int64_t end) {
  int32_t node = kTop;
  ++nodes_[kTop].count;
  while (begin < end) {
    int32_t child = children_.find(node, token(begin));
    if (child == ChildMap::kNone) {
      child = nodes_.add({.begin = begin,
                          .length = static_cast<int32_t>(end - begin),
                          .count = 1,
                          .ended = 1,
                          .parent = node,
                          .slot = static_cast<int32_t>(nodes_[node].children.size())});
      nodes_[node].children.push_back(child);
      children_.set(node, token(begin), child);
      return;
    }
    const auto label = piece(nodes_[child].begin, nodes_[child].length);
    const auto differs = std::ranges::mismatch(label, piece(begin, end - begin)).in1;
    const auto common = static_cast<int32_t>(differs - label.begin());
    if (common < nodes_[child].length) child = split(child, common);
    nodes_[child].begin = begin;
    change_count(child, 1);
    begin += common;
    node = child;
  }
  ++nodes_[node].ended;
}

void SuffixTree::remove(int64_t begin, int64_t end) {
  int32_t node = kTop;
  --nodes_[kTop].count;
  while (begin < end) {
    const int32_t child = children_.find(node, token(begin));
    CHECK(child != ChildMap::kNone);
    change_count(child, -1);
    begin += nodes_[child].length;
    if (nodes_[child].count == 0) {
      auto& siblings = nodes_[node].children;
      CHECK(nodes_[child].children.empty() && siblings.back() == child);
      siblings.pop_back();
      children_.erase(node, token(nodes_[child].begin));
      nodes_.erase(child);
      merge_with_only_child(node);
      return;
    }
    node = child;
  }
  --nodes_[node].ended;
  merge_with_only_child(node);
}

// Makes a node of the first tokens of a node's label, above it.
int32_t SuffixTree::split(int32_t node, int32_t length) {
  const int32_t upper = nodes_.add(
      {.begin = nodes_[node].begin, .length = length, .count = nodes_[node].count, .children = {node}});
  take_place_of(upper, node);
  Node& lower = nodes_[node];
  lower.begin += length;
  lower.length -= length;
  lower.parent = upper;
  lower.slot = 0;
  children_.set(upper, token(lower.begin), node);
  return upper;
}

// A node that only its one child goes through is no branching: it becomes part of it.
void SuffixTree::merge_with_only_child(int32_t node) {
  if (node == kTop || nodes_[node].ended > 0 || nodes_[node].children.size() != 1) return;
  const int32_t child = nodes_[node].children.front();
  children_.erase(node, token(nodes_[child].begin));
  nodes_[child].begin -= nodes_[node].length;
  nodes_[child].length += nodes_[node].length;
  take_place_of(child, node);
  nodes_.erase(node);
}

// The label of `node` begins like that of `other`, whose place it takes.
void SuffixTree::take_place_of(int32_t node, int32_t other) {
  const int32_t parent = nodes_[other].parent;
  const int32_t slot = nodes_[other].slot;
  nodes_[node].parent = parent;
  nodes_[node].slot = slot;
  nodes_[parent].children[static_cast<size_t>(slot)] = node;
  children_.set(parent, token(nodes_[node].begin), node);
}

// `change` is 1 or -1: the first or the last of the siblings that are as frequent makes place for the
// node.
void SuffixTree::change_count(int32_t node, int32_t change) {
  auto& siblings = nodes_[nodes_[node].parent].children;
  const auto count = [&](int32_t sibling) { return nodes_[sibling].count; };
  const int32_t other =
      change > 0 ? *std::ranges::lower_bound(siblings, count(node), std::greater{}, count)
                 : *(std::ranges::upper_bound(siblings, count(node), std::greater{}, count) - 1);
  std::swap(siblings[static_cast<size_t>(nodes_[other].slot)],
            siblings[static_cast<size_t>(nodes_[node].slot)]);
  std::swap(nodes_[other].slot, nodes_[node].slot);
  nodes_[node].count += change;
}

void SuffixTree::find(std::span<const TokenId> string, Occurrences& found) const {
  found.node = nodes_[kTop].children.empty() ? ChildMap::kNone : kTop;
  found.used = 0;
  for (const TokenId next : string) step(found, next);
  found.recent.clear();
  const auto length = static_cast<int64_t>(string.size());
  for (int64_t place = settled_; place + length < end_; ++place) {
    if (std::ranges::equal(string, piece(place, length))) found.recent.push_back(place + length);
  }
}

void SuffixTree::extend(const Occurrences& string, TokenId next, Occurrences& longer) const {
  longer.node = string.node;
  longer.used = string.used;
  step(longer, next);
  longer.recent.clear();
  for (const int64_t place : string.recent) {
    if (token(place) == next && place + 1 < end_) longer.recent.push_back(place + 1);
  }
}

// One token further down the tree. Nothing in it follows a string that ends where a leaf does.
void SuffixTree::step(Occurrences& string, TokenId next) const {
  if (string.node == ChildMap::kNone) return;
  if (string.used == nodes_[string.node].length) {
    string.node = children_.find(string.node, next);
    string.used = 0;
  } else if (token(nodes_[string.node].begin + string.used) != next) {
    string.node = ChildMap::kNone;
  }
  if (string.node == ChildMap::kNone) return;
  const Node& node = nodes_[string.node];
  if (++string.used == node.length && node.children.empty()) string.node = ChildMap::kNone;
}

// Counts `next` with the one of the first `n` that has its token; otherwise it comes behind them all.
void SuffixTree::count_in(std::vector<Continuation>& out, size_t n, const Continuation& next) {
  const auto first = std::span(out).first(n);
  const auto same = std::ranges::find(first, next.token, &Continuation::token);
  if (same == first.end()) return out.push_back(next);
  same->count += next.count;
  same->latest = std::max(same->latest, next.latest);
}

int64_t SuffixTree::continuations(const Occurrences& string, double min_share,
                                  std::vector<Continuation>& out) const {
  out.clear();
  for (const int64_t place : string.recent) {
    count_in(out, out.size(), {.token = token(place), .count = 1, .latest = place});
  }
  const size_t n_recent = out.size();  // what the tree has differs among itself
  auto total = static_cast<int64_t>(string.recent.size());
  if (string.node != ChildMap::kNone) {
    const Node& node = nodes_[string.node];
    total += node.count - (string.used < node.length ? 0 : node.ended);
    if (string.used < node.length) {
      const int64_t place = node.begin + string.used;
      count_in(out, n_recent, {.token = token(place), .count = node.count, .latest = place});
    } else {
      // No token gets more from recent places than there are of them.
      const double least =
          min_share * static_cast<double>(total) - static_cast<double>(string.recent.size());
      for (const int32_t child : node.children) {
        const Node& next = nodes_[child];
        if (next.count < least) break;
        count_in(out, n_recent, {.token = token(next.begin), .count = next.count, .latest = next.begin});
      }
    }
  }
  const double least = min_share * static_cast<double>(total);
  std::erase_if(out, [&](const Continuation& c) { return static_cast<double>(c.count) < least; });
  std::ranges::sort(out, std::greater{}, [](const auto& c) { return std::pair(c.count, c.latest); });
  return total;
}

}  // namespace forerun
