#include "retrieval/fusion.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>

namespace forerun {
namespace {

// A tree that is written down. Handles are indices of nodes; node 0 is the root.
class WrittenTree : public CandidateTree {
 public:
  WrittenTree() : children_(1) {}

  uint64_t add(uint64_t parent, int token, float share) {
    children_.emplace_back();
    const uint64_t handle = children_.size() - 1;
    children_[parent].push_back({TokenId{token}, share, handle});
    return handle;
  }
  size_t size() const { return children_.size(); }
  const std::vector<Candidate>& below(uint64_t handle) const { return children_[handle]; }
  void children(uint64_t handle, std::vector<Candidate>& out) const override {
    out.insert(out.end(), children_[handle].begin(), children_[handle].end());
  }

 private:
  std::vector<std::vector<Candidate>> children_;
};

FusionSource source_of(const WrittenTree& tree, DraftSource source = DraftSource::kDatastore,
                       float discount = 1.0f, float factor = 1.0f) {
  return {&tree, 0, source, source == DraftSource::kInput ? 2 : 4, discount, factor};
}

DraftTree fuse(std::span<const FusionSource> sources, const FusionLimits& limits) {
  DraftTree tree;
  Fusion().fuse(sources, limits, tree);
  return tree;
}

std::vector<int> tokens_of(const DraftTree& tree) {
  std::vector<int> tokens;
  for (const DraftNode& node : tree.nodes()) tokens.push_back(to_int(node.token));
  return tokens;
}

// The same by looking through all proposals at every step.
DraftTree fuse_slowly(std::span<const FusionSource> sources, const FusionLimits& limits) {
  struct Proposal {
    float score;
    int depth;
    const FusionSource* source;
    Candidate candidate;
    int32_t parent;
  };
  DraftTree tree;
  std::vector<Proposal> proposals;  // in the order they were made
  const auto propose = [&](const FusionSource& source, uint64_t handle, float score, int depth,
                           int32_t parent) {
    if (depth > limits.max_depth) return;
    const auto& below = static_cast<const WrittenTree*>(source.tree)->below(handle);
    for (const Candidate& child : below)
      proposals.push_back({score * child.share, depth, &source, child, parent});
  };
  for (const FusionSource& source : sources) propose(source, 0, source.discount, 1, kRoot);
  while (tree.size() < limits.max_nodes && !proposals.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < proposals.size(); ++i) {
      if (std::tie(proposals[i].score, proposals[i].depth) >
          std::tie(proposals[best].score, proposals[best].depth)) {
        best = i;
      }
    }
    const Proposal chosen = proposals[best];
    proposals.erase(proposals.begin() + static_cast<ptrdiff_t>(best));
    auto node = tree.find_child(chosen.parent, chosen.candidate.token);
    if (!node) {
      if (tree.n_children(chosen.parent) == limits.max_children) continue;
      node = tree.add({chosen.candidate.token, chosen.parent, chosen.score, chosen.source->source,
                       chosen.source->match_length});
    }
    propose(*chosen.source, chosen.candidate.handle, chosen.score * chosen.source->factor,
            chosen.depth + 1, *node);
  }
  return tree;
}

TEST(Fusion, EqualsBruteForce) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<WrittenTree> trees(static_cast<size_t>(pick(0, 4)));
    std::vector<FusionSource> sources;
    for (WrittenTree& tree : trees) {
      for (uint64_t handle = 0; handle < tree.size() && tree.size() < 60; ++handle) {
        // Few different shares, so that there are many ties.
        for (int token = pick(0, 1); token < 6; token += pick(1, 4)) {
          tree.add(handle, token, static_cast<float>(pick(1, 4)) / 4.0f);
        }
      }
      const bool input = pick(0, 1) == 0;
      sources.push_back(source_of(tree, input ? DraftSource::kInput : DraftSource::kDatastore,
                                  input ? 0.6f : 1.0f, static_cast<float>(pick(7, 10)) / 10.0f));
    }
    const FusionLimits limits{pick(0, 40), pick(0, 6), pick(1, 5)};
    const DraftTree tree = fuse(sources, limits);
    const DraftTree expected = fuse_slowly(sources, limits);
    ASSERT_EQ(tree.size(), expected.size());
    for (int32_t i = 0; i < tree.size(); ++i) {
      EXPECT_EQ(tree[i].token, expected[i].token);
      EXPECT_EQ(tree[i].parent, expected[i].parent);
      EXPECT_EQ(tree[i].score, expected[i].score);
      EXPECT_EQ(tree[i].source, expected[i].source);
      EXPECT_EQ(tree[i].match_length, expected[i].match_length);
      EXPECT_LE(tree[i].score, tree[i].parent == kRoot ? 1.0f : tree[tree[i].parent].score);
      EXPECT_LE(tree.n_children(i), limits.max_children);
    }
    EXPECT_LE(tree.size(), limits.max_nodes);
    EXPECT_LE(tree.max_depth(), limits.max_depth);
  }
}

TEST(Fusion, NothingGivesNothing) {
  EXPECT_TRUE(fuse({}, {32, 8, 5}).empty());
  const WrittenTree empty;
  EXPECT_TRUE(fuse(std::vector{source_of(empty)}, {32, 8, 5}).empty());
}

TEST(Fusion, TheLimitOnChildrenKeepsOutABetterOne) {
  WrittenTree tree;
  const auto first = tree.add(0, 1, 0.4f);
  const auto second = tree.add(0, 2, 0.35f);
  tree.add(0, 3, 0.25f);
  tree.add(first, 4, 0.5f);   // 0.2
  tree.add(second, 5, 0.5f);  // 0.175
  EXPECT_EQ(tokens_of(fuse(std::vector{source_of(tree)}, {4, 8, 2})), (std::vector<int>{1, 2, 4, 5}));
  EXPECT_EQ(tokens_of(fuse(std::vector{source_of(tree)}, {4, 8, 3})), (std::vector<int>{1, 2, 3, 4}));
}

TEST(Fusion, BothSourcesGoOnBelowANodeTheyShare) {
  WrittenTree store;
  store.add(store.add(0, 1, 1.0f), 2, 0.9f);
  WrittenTree input;
  input.add(input.add(0, 1, 1.0f), 3, 1.0f);
  const std::vector sources{source_of(store), source_of(input, DraftSource::kInput, 0.6f, 0.8f)};
  const DraftTree tree = fuse(sources, {8, 8, 5});
  ASSERT_EQ(tokens_of(tree), (std::vector<int>{1, 2, 3}));
  // The better score counts; they are not added up.
  EXPECT_FLOAT_EQ(tree[0].score, 1.0f);
  EXPECT_EQ(tree[0].source, DraftSource::kDatastore);
  EXPECT_EQ(tree[0].match_length, 4);
  EXPECT_EQ(tree[2].parent, 0);
  EXPECT_FLOAT_EQ(tree[2].score, 0.6f * 0.8f);
  EXPECT_EQ(tree[2].source, DraftSource::kInput);
  EXPECT_EQ(tree[2].match_length, 2);
}

TEST(Fusion, TiesGoDeeperThenToWhatWasProposedFirst) {
  WrittenTree tree;
  const auto first = tree.add(0, 7, 0.5f);
  tree.add(0, 3, 0.5f);
  tree.add(first, 9, 1.0f);
  EXPECT_EQ(tokens_of(fuse(std::vector{source_of(tree)}, {3, 8, 5})), (std::vector<int>{7, 9, 3}));
}

TEST(Fusion, ACandidatesOwnMatchLengthCounts) {
  class OneCandidate : public CandidateTree {
    void children(uint64_t handle, std::vector<Candidate>& out) const override {
      if (handle == 0) out.push_back({TokenId{5}, 1.0f, 1, 3});
    }
  };
  const OneCandidate tree;
  const FusionSource source{&tree, 0, DraftSource::kDatastore, 0, 1.0f, 1.0f};
  EXPECT_EQ(fuse({&source, 1}, {8, 8, 5})[0].match_length, 3);
}

}  // namespace
}  // namespace forerun
