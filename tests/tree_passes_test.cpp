// Trees: the logits of every node of random trees, of several sequences in one pass,
// equal those of its path from the beginning of the text, run alone.
//
// A node's cells lie in another order in the cache than those of a text run alone, with
// other rows beside it. Our kernels are row-invariant, so that the logits are equal bit
// for bit, in every weight type.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/engine.h"
#include "support/model_files.h"
#include "support/path_oracle.h"
#include "support/spread_model.h"

namespace forerun {
namespace {

using namespace test;

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

void expect_trees_equal_paths(Executor& executor, PathOracle& oracle, uint32_t seed) {
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
    EXPECT_EQ(max_difference(result.logits(i), oracle.logits(rows[i].path)), 0.0)
        << "seed " << seed << ", row " << i << ", depth " << rows[i].path.size();
  }
  for (const SequenceId sequence : sequences) executor.cells().remove(sequence);
}

TEST(Trees, EveryNodeEqualsItsPathRunAlone) {
  for (const std::string& name : tiny_model_names()) {
    SCOPED_TRACE(name);
    const auto model = load_model(model_file(name));
    const auto executor = make_executor(model);
    PathOracle oracle(model, KvType::kF16);
    for (uint32_t seed = 0; seed < 2; ++seed) expect_trees_equal_paths(*executor, oracle, seed);
  }
}

TEST(Trees, EveryNodeEqualsItsPathRunAloneOnAGpu) {
  if (load_model_on_gpu(model_file("tiny-llama-f16")) == nullptr)
    GTEST_SKIP() << "no GPU for our kernels here";
  int n_models = 0;
  for (const std::string& name : tiny_model_names()) {
    SCOPED_TRACE(name);
    const auto model = load_model_on_gpu(model_file(name));
    if (model == nullptr) continue;
    ++n_models;
    for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {
      if (!model->parts().front().gpu->serves(model->config(), type)) continue;
      const auto executor = make_executor(model, type);
      PathOracle oracle(model, type);
      for (uint32_t seed = 0; seed < 2; ++seed) expect_trees_equal_paths(*executor, oracle, seed);
    }
  }
  EXPECT_GT(n_models, 10);
}

// A layer on the CPU, and mixtures.
TEST(Trees, EveryNodeEqualsItsPathRunAloneOnAGpuAndTheCpu) {
  const auto whole = load_model_on_gpu(model_file("tiny-llama-f16"));
  if (whole == nullptr) GTEST_SKIP() << "no GPU for our kernels here";
  int n_dense = 0, n_mixtures = 0;
  for (const std::string& name : tiny_model_names()) {
    SCOPED_TRACE(name);
    const auto model = load_beside_cpu(model_file(name), whole->shared_device());
    if (model == nullptr || model->kernels_name().empty()) continue;
    ASSERT_EQ(model->parts().size(), 2u);
    ++(model->config().experts.n_all > 0 ? n_mixtures : n_dense);
    const auto executor = make_executor(model);
    PathOracle oracle(model, KvType::kF16);
    for (uint32_t seed = 0; seed < 2; ++seed) expect_trees_equal_paths(*executor, oracle, seed);
  }
  EXPECT_GT(n_dense, 10);
  EXPECT_GT(n_mixtures, 0);
}

TEST(Trees, EveryNodeEqualsItsPathRunAloneInEveryCache) {
  for (const char* name :
       {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3-pattern", "tiny-gpt-oss",
        "tiny-gemma4-moe", "tiny-gemma4-e", "tiny-deepseek2", "tiny-llama4"}) {
    SCOPED_TRACE(name);
    const auto model = load_model(model_file(name), /*n_threads=*/2);
    for (const KvType type : {KvType::kF32, KvType::kQ8_0}) {
      const auto executor = make_executor(model, type);
      PathOracle oracle(model, type);
      for (uint32_t seed = 0; seed < 3; ++seed) expect_trees_equal_paths(*executor, oracle, seed);
    }
  }
}

TEST(Trees, EveryNodeEqualsItsPathRunAloneInRealModels) {
  for (const char* name : {"smollm2", "gemma3-270m"}) {
    SCOPED_TRACE(name);
    const auto model = load_model(model_file(name));
    const auto executor = make_executor(model);
    PathOracle oracle(model, KvType::kF16);
    expect_trees_equal_paths(*executor, oracle, 5);
  }
}

}  // namespace
}  // namespace forerun
