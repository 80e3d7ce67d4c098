// Trees: the logits of every node of random trees, of several sequences in one pass,
// equal those of its path from the beginning of the text, run alone.
//
// A node's cells lie in another order in the cache than those of a text run alone, and
// the products of a pass of many rows sum in another order than those of few. With
// everything in F32 that is worth about 1e-6 of the largest logit, which is about 10.
// ggml's GELU rounds to F16, and so do F16 weights' products and an F16 cache: there a
// sum can tip over to a neighbour 5e-4 away, also inside ggml's attention, which adds up
// values in F16.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/engine.h"
#include "support/f32_copy.h"
#include "support/model_files.h"
#include "support/path_oracle.h"

namespace forerun {
namespace {

using namespace test;

constexpr double kF32Tolerance = 1e-4;
constexpr double kGeluTolerance = 0.02;
constexpr double kF16Tolerance = 0.05;

struct TreeRow {
  Row row;
  std::vector<TokenId> path;  // the whole text up to it
};

// Grows a random tree of n nodes behind the committed text of a sequence.
std::vector<TreeRow> grow(Executor& executor, SequenceId sequence, const std::vector<TokenId>& text,
                          size_t n, std::mt19937& random) {
  std::vector<TreeRow> tree;
  for (size_t i = 0; i < n; ++i) {
    const size_t parent = random() % (tree.size() + 1);  // the last one: the end of the text
    const bool is_root = parent == tree.size();
    const NodeId node =
        executor.cells()
            .extend(sequence, is_root ? std::nullopt : std::optional(tree[parent].row.node))
            .value();
    const auto token = random_tokens(executor.model(), 1, static_cast<uint32_t>(random())).front();
    TreeRow row{.row = {.sequence = sequence, .node = node, .token = token, .logits = true},
                .path = is_root ? text : tree[parent].path};
    row.path.push_back(token);
    tree.push_back(std::move(row));
  }
  return tree;
}

// Takes rows from the trees in turn at random; each tree's own order stays, so that
// parents come before children.
std::vector<TreeRow> interleave(std::vector<std::vector<TreeRow>> trees, std::mt19937& random) {
  std::vector<TreeRow> rows;
  std::vector<size_t> next(trees.size());
  while (true) {
    std::vector<size_t> open;
    for (size_t t = 0; t < trees.size(); ++t) {
      if (next[t] < trees[t].size()) open.push_back(t);
    }
    if (open.empty()) return rows;
    const size_t t = open[random() % open.size()];
    rows.push_back(std::move(trees[t][next[t]++]));
  }
}

void expect_trees_equal_paths(Executor& executor, PathOracle& oracle, uint32_t seed, double tolerance) {
  std::mt19937 random(seed);
  std::vector<std::vector<TreeRow>> trees;
  std::vector<SequenceId> sequences;
  // A sequence that goes away in between leaves low cells for what comes later, so that
  // cells are not in the order of positions.
  const SequenceId hole = executor.cells().create();
  read_and_commit(executor, hole, random_tokens(executor.model(), 50, seed));
  std::vector<std::vector<TokenId>> texts;
  for (int i = 0; i < 3; ++i) {
    sequences.push_back(executor.cells().create());
    texts.push_back(random_tokens(executor.model(), 2 + random() % 40, static_cast<uint32_t>(random())));
    read_and_commit(executor, sequences.back(), std::span(texts.back()).first(texts.back().size() / 2));
  }
  executor.cells().remove(hole);
  for (size_t i = 0; i < sequences.size(); ++i) {
    read_and_commit(executor, sequences[i], std::span(texts[i]).subspan(texts[i].size() / 2));
    trees.push_back(grow(executor, sequences[i], texts[i], 1 + random() % 24, random));
  }
  const auto rows = interleave(std::move(trees), random);
  Pass pass;
  for (const TreeRow& row : rows) pass.rows.push_back(row.row);
  const PassResult& result = executor.forward(pass);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LE(max_difference(result.logits(i), oracle.logits(rows[i].path)), tolerance)
        << "seed " << seed << ", row " << i << ", depth " << rows[i].path.size();
  }
  for (const SequenceId sequence : sequences) executor.cells().remove(sequence);
}

TEST(Trees, EveryNodeEqualsItsPathRunAlone) {
  for (const char* name : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3-pattern"}) {
    SCOPED_TRACE(name);
    const F32Copy copy(name);
    PathOracle oracle(copy.model);
    for (uint32_t seed = 0; seed < 6; ++seed) {
      const bool gelu = copy.model->config().activation == Activation::kGelu;
      expect_trees_equal_paths(*copy.executor, oracle, seed, gelu ? kGeluTolerance : kF32Tolerance);
    }
  }
}

TEST(Trees, EveryNodeEqualsItsPathRunAloneInF16) {
  const auto model = load_model(model_file("tiny-llama-f16"));
  const auto executor = make_executor(model);
  PathOracle oracle(model, KvType::kF16);
  for (uint32_t seed = 0; seed < 4; ++seed) {
    expect_trees_equal_paths(*executor, oracle, seed, kF16Tolerance);
  }
}

}  // namespace
}  // namespace forerun
