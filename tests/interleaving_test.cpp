// Random interleavings of everything one can do to the cache, on several sequences,
// equal recomputation from scratch: full passes over trees and chains, draft passes
// with blocks left out, commits of part of a tree, rollbacks, forks, removals, and a
// cache that is full. Equal bit for bit, as trees are (tree_passes_test.cpp).

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "support/engine.h"
#include "support/f32_copy.h"
#include "support/path_oracle.h"

namespace forerun {
namespace {

using namespace test;

constexpr size_t kMaxSequences = 5;
constexpr size_t kMaxText = 120;

struct Node {
  Row row;
  int parent;                 // index into the tree, or -1
  std::vector<TokenId> path;  // the whole text up to it
};
using Tree = std::vector<Node>;

class Interleaving {
 public:
  Interleaving(Executor& executor, PathOracle& oracle, uint32_t seed)
      : executor_(executor), oracle_(oracle), random_(seed) {}
  ~Interleaving() {
    for (const auto& [sequence, text] : texts_) executor_.cells().remove(sequence);
  }

  void step() {
    switch (random_() % 8) {
      case 0:
        if (texts_.size() < kMaxSequences) texts_[executor_.cells().create()] = {};
        break;
      case 1: fork(); break;
      case 2:
        if (texts_.size() > 2) remove_any();
        break;
      default: pass(); break;
    }
  }

  int n_full() const { return n_full_; }
  int n_checked() const { return n_checked_; }

 private:
  SequenceId any() { return std::next(texts_.begin(), pick(texts_.size()))->first; }
  ptrdiff_t pick(size_t n) { return static_cast<ptrdiff_t>(random_() % n); }

  void fork() {
    if (texts_.empty() || texts_.size() >= kMaxSequences) return;
    const SequenceId source = any();
    const auto& text = texts_[source];
    const ptrdiff_t n = pick(text.size() + 1);
    const SequenceId fork = executor_.cells().fork(source, static_cast<int>(n));
    texts_[fork] = {text.begin(), text.begin() + n};
  }

  void remove_any() {
    const SequenceId sequence = any();
    executor_.cells().remove(sequence);
    texts_.erase(sequence);
  }

  // One step of decoding for a few sequences: trees, perhaps a draft, verification, and
  // something kept of each.
  void pass() {
    if (texts_.empty()) return;
    std::map<SequenceId, Tree> trees;
    for (ptrdiff_t n = 1 + pick(3); n > 0; --n) {
      const SequenceId sequence = any();
      if (trees.contains(sequence)) continue;
      if (!grow(sequence, trees[sequence])) {
        ++n_full_;
        for (const auto& [grown, tree] : trees) executor_.cells().rollback(grown);
        remove_any();
        return;
      }
    }
    if (random_() % 2 == 0) {
      const LayerSet layers = random_layer_set(executor_.model().config().n_layers, random_);
      check(trees, layers);
    }
    check(trees, std::nullopt);
    for (auto& [sequence, tree] : trees) keep_some(sequence, tree);
  }

  // False when the cache is full.
  bool grow(SequenceId sequence, Tree& tree) {
    const auto& text = texts_[sequence];
    const bool chain = random_() % 2 == 0;
    const size_t n = 1 + random_() % (chain ? 20 : 8);
    for (size_t i = 0; i < n && text.size() + i < kMaxText; ++i) {
      const auto last = static_cast<int>(tree.size()) - 1;
      const int parent = chain ? last : static_cast<int>(pick(tree.size() + 1)) - 1;
      const Node* above = parent < 0 ? nullptr : &tree[static_cast<size_t>(parent)];
      const auto id = executor_.cells().extend(
          sequence, above == nullptr ? std::nullopt : std::optional(above->row.node));
      if (!id) return false;
      const auto token = random_tokens(executor_.model(), 1, static_cast<uint32_t>(random_())).front();
      Node node{.row = {.sequence = sequence, .node = *id, .token = token, .logits = true},
                .parent = parent,
                .path = above == nullptr ? text : above->path};
      node.path.push_back(token);
      tree.push_back(std::move(node));
    }
    return true;
  }

  void check(const std::map<SequenceId, Tree>& trees, const std::optional<LayerSet>& layers) {
    Pass pass;
    pass.layers = layers;
    std::vector<const Node*> nodes;
    for (const auto& [sequence, tree] : trees) {
      for (const Node& node : tree) {
        pass.rows.push_back(node.row);
        nodes.push_back(&node);
      }
    }
    if (nodes.empty()) return;
    const PassResult& result = executor_.forward(pass);
    for (size_t i = 0; i < nodes.size(); ++i, ++n_checked_) {
      const auto& path = nodes[i]->path;
      const size_t n_full = texts_[nodes[i]->row.sequence].size();
      ASSERT_EQ(max_difference(result.logits(i), layers ? oracle_.draft_logits(path, n_full, *layers)
                                                        : oracle_.logits(path)),
                0.0)
          << (layers ? "draft" : "full") << " pass, text of " << n_full << ", depth " << path.size();
    }
  }

  void keep_some(SequenceId sequence, const Tree& tree) {
    if (tree.empty() || random_() % 4 == 0) {
      executor_.cells().rollback(sequence);
      return;
    }
    const auto last = static_cast<int>(pick(tree.size()));
    std::vector<NodeId> path;
    for (int i = last; i >= 0; i = tree[static_cast<size_t>(i)].parent) {
      path.insert(path.begin(), tree[static_cast<size_t>(i)].row.node);
    }
    executor_.cells().commit(sequence, path);
    texts_[sequence] = tree[static_cast<size_t>(last)].path;
  }

  Executor& executor_;
  PathOracle& oracle_;
  std::mt19937 random_;
  std::map<SequenceId, std::vector<TokenId>> texts_;  // the committed text of each
  int n_full_ = 0;
  int n_checked_ = 0;
};

TEST(Interleaving, EqualsRecomputationFromScratch) {
  int n_full = 0;
  int n_checked = 0;
  for (const char* name : {"tiny-llama", "tiny-gemma4-e"}) {
    SCOPED_TRACE(name);
    const F32Copy copy(name, /*n_cells=*/256);
    PathOracle oracle(copy.model);
    for (uint32_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(seed);
      Interleaving interleaving(*copy.executor, oracle, seed);
      for (int i = 0; i < 120; ++i) {
        interleaving.step();
        if (HasFatalFailure()) return;
      }
      n_full += interleaving.n_full();
      n_checked += interleaving.n_checked();
    }
    EXPECT_EQ(copy.executor->cells().n_free(), 256);
  }
  EXPECT_GT(n_full, 0) << "the cache must have been full at times";
  EXPECT_GT(n_checked, 1500);
}

}  // namespace
}  // namespace forerun
