// On the CPU a row's logits are the same bits however many rows share its pass and
// however many threads compute it: tokens read one by one, by one thread, against the
// same tokens in passes of 1 to 16 rows by 1 to 4 threads, on every tiny model (every
// architecture and weight type) and both real ones. Trees are tree_passes_test.cpp's.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/engine.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

constexpr size_t kPrompt = 37;
constexpr size_t kMaxRows = 16;

using Rows = std::vector<std::vector<float>>;  // logits of the tokens behind the prompt

// The logits of `tokens` behind the prompt, read `n` at a time; the prompt itself, too,
// is read in parts of that size, so that its keys and values are put to the test.
Rows read_by(Executor& executor, const std::vector<TokenId>& tokens, size_t n) {
  const auto n_vocab = static_cast<size_t>(executor.model().config().n_vocab);
  const SequenceId sequence = executor.cells().create();
  Rows rows;
  for (size_t at = 0; at < tokens.size(); at += n) {
    const auto part = std::span(tokens).subspan(at, std::min(n, tokens.size() - at));
    const auto logits = read_and_commit(executor, sequence, part);
    for (size_t i = 0; i < part.size(); ++i) {
      if (at + i < kPrompt) continue;
      const auto row = std::span(logits).subspan(i * n_vocab, n_vocab);
      rows.emplace_back(row.begin(), row.end());
    }
  }
  executor.cells().remove(sequence);
  return rows;
}

void expect_same_rows(const std::string& name, const std::vector<std::vector<size_t>>& rows_by_threads) {
  const auto path = model_file(name);
  Rows alone;
  for (size_t t = 0; t < rows_by_threads.size(); ++t) {
    const auto model = load_model(path, static_cast<int>(t) + 1);
    const auto executor = make_executor(model);
    const auto tokens = random_tokens(*model, kPrompt + kMaxRows, 17);
    if (t == 0) alone = read_by(*executor, tokens, 1);
    for (const size_t n : rows_by_threads[t]) {
      const Rows together = read_by(*executor, tokens, n);
      ASSERT_EQ(together.size(), alone.size());
      for (size_t i = 0; i < alone.size(); ++i) {
        ASSERT_EQ(max_difference(together[i], alone[i]), 0.0)
            << name << ", " << t + 1 << " threads, passes of " << n << " rows, row " << i;
      }
    }
  }
}

TEST(RowInvariance, TinyModelsOfEveryTypeAndArchitecture) {
  std::vector<size_t> every(kMaxRows - 1);
  for (size_t i = 0; i < every.size(); ++i) every[i] = i + 2;
  for (const std::string& name : tiny_model_names()) expect_same_rows(name, {every, {5}});
}

// Layers that leave no cells are computed for the rows of which something is wanted.
TEST(RowInvariance, WhatIsWantedOfOtherRowsMakesNoDifference) {
  for (const char* name : {"tiny-gemma4-e", "tiny-gemma3-pattern"}) {
    const auto model = load_model(model_file(name), 2);
    const auto executor = make_executor(model);
    const auto tokens = random_tokens(*model, 2 * kPrompt, 23);
    const Rows all = read_by(*executor, tokens, tokens.size());
    const SequenceId sequence = executor->cells().create();
    // The first half without a result, the second with those of some rows.
    for (const size_t first : {size_t{0}, kPrompt}) {
      Pass pass;
      std::vector<NodeId> path;
      for (size_t i = first; i < first + kPrompt; ++i) {
        const auto parent = path.empty() ? std::nullopt : std::optional(path.back());
        path.push_back(executor->cells().extend(sequence, parent).value());
        const bool wanted = first > 0 && i % 9 == 1;
        pass.rows.push_back(
            {.sequence = sequence, .node = path.back(), .token = tokens[i], .logits = wanted});
      }
      const PassResult& result = executor->forward(pass);
      for (size_t i = 0; i < kPrompt; ++i) {
        if (!pass.rows[i].logits) continue;
        EXPECT_EQ(max_difference(result.logits(i), all[i]), 0.0) << name << ", row " << i;
      }
      executor->cells().commit(sequence, path);
    }
  }
}

TEST(RowInvariance, OnAGpu) {
  if (load_model_on_gpu(model_file("tiny-llama-f16")) == nullptr)
    GTEST_SKIP() << "no GPU for our kernels here";
  for (const std::string& name : tiny_and_real_model_names()) {
    const auto model = load_model_on_gpu(model_file(name));
    if (model == nullptr) continue;
    const auto executor = make_executor(model);
    const auto tokens = random_tokens(*model, kPrompt + 90, 17);
    const Rows alone = read_by(*executor, tokens, 1);
    for (const size_t n : {2, 3, 4, 5, 8, 13, 16, 31, 33, 64, 100}) {
      const Rows together = read_by(*executor, tokens, n);
      ASSERT_EQ(together.size(), alone.size());
      for (size_t i = 0; i < alone.size(); ++i) {
        ASSERT_EQ(max_difference(together[i], alone[i]), 0.0)
            << name << ", passes of " << n << " rows, row " << i;
      }
    }
  }
}

// Threads beyond the machine's cores wait for each other at every node, so few passes.
TEST(RowInvariance, MoreThreads) {
  for (const char* name :
       {"tiny-llama-q4_k", "tiny-qwen2", "tiny-gemma3-pattern", "tiny-gemma4-e", "tiny-gemma4-moe",
        "tiny-deepseek2", "tiny-mixtral-q4_k", "tiny-gpt-oss-mxfp4"}) {
    expect_same_rows(name, {{16}, {1, 16}, {7}, {16}});
  }
}

// Rows that fill a pass up change nothing in the others: logits, states between blocks, and
// states that are given.
TEST(RowInvariance, FilledPasses) {
  for (const char* name : {"tiny-llama-q4_1", "tiny-gemma3"}) {
    const auto model = load_model(model_file(name));
    const auto tokens = random_tokens(*model, 12, 3);
    const int n_layers = model->config().n_layers;
    std::vector<Rows> found;
    for (const int min_rows : {1, 9}) {
      Executor executor(model, {.kv = {.n_cells = 256}, .max_rows = 32, .min_rows = min_rows});
      const SequenceId sequence = executor.cells().create();
      read_and_commit(executor, sequence, std::span(tokens).first(8));
      Pass pass;
      for (size_t i = 8; i < tokens.size(); ++i) {
        pass.rows.push_back({.sequence = sequence,
                             .node = executor.cells().extend(sequence).value(),
                             .token = tokens[i],
                             .logits = i % 2 == 0,
                             .hidden = i % 3 != 0});
      }
      pass.hidden_at = {n_layers};
      Rows rows;
      std::vector<float> states;
      const auto keep = [&] {
        const PassResult& result = executor.forward(pass);
        for (size_t r = 0; r < pass.rows.size(); ++r) {
          const auto add = [&](std::span<const float> row) {
            rows.emplace_back(row.begin(), row.end());
          };
          if (pass.rows[r].logits) add(result.logits(r));
          if (pass.rows[r].hidden) add(result.hidden(0, r));
        }
      };
      keep();
      for (size_t i = 0; i < pass.rows.size(); ++i) {
        for (int k = 0; k < model->config().n_embd; ++k)
          states.push_back(rows[0][static_cast<size_t>(k)]);
      }
      pass.states = states;
      keep();
      found.push_back(std::move(rows));
    }
    ASSERT_EQ(found[0].size(), found[1].size());
    for (size_t i = 0; i < found[0].size(); ++i) {
      EXPECT_EQ(max_difference(found[0][i], found[1][i]), 0.0) << name << ", result " << i;
    }
  }
}

TEST(RowInvariance, SmolLm2) {
  expect_same_rows("smollm2", {{2, 3, 4, 5, 8, 13, 16, 53}, {1, 16}});
}

TEST(RowInvariance, Gemma3) {
  expect_same_rows("gemma3-270m", {{2, 5, 16, 53}, {8}});
}

}  // namespace
}  // namespace forerun
