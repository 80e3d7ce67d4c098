// The residual stream at every block boundary, against a plain forward pass
// (support/plain_forward.h), and single blocks run alone on given states.
//
// Models are copies in F32 with an F32 cache, so that only the order of sums and our
// approximations of exp and tanh differ: about 1e-6 of the largest number, each block
// adding a little. A block alone sums in the same order and is equal bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "support/distance.h"
#include "support/engine.h"
#include "support/f32_copy.h"
#include "support/plain_forward.h"

namespace forerun {
namespace {

using namespace test;

constexpr size_t kTokens = 40;

constexpr double kTolerance = 1e-5;

std::vector<int> all_boundaries(const Model& model) {
  std::vector<int> boundaries;
  for (int b = 0; b <= 2 * model.config().n_layers; ++b) boundaries.push_back(b);
  return boundaries;
}

// A chain of rows for `tokens` behind the committed text of a sequence.
Pass chain_pass(Executor& executor, SequenceId sequence, std::span<const TokenId> tokens) {
  Pass pass;
  std::optional<NodeId> parent;
  for (const TokenId token : tokens) {
    parent = executor.cells().extend(sequence, parent).value();
    pass.rows.push_back(
        {.sequence = sequence, .node = *parent, .token = token, .logits = true, .hidden = true});
  }
  return pass;
}

void expect_equals_plain(const std::string& name) {
  const F32Copy copy(name);
  const auto tokens = random_tokens(*copy.model, kTokens, 5);
  const PlainResult plain = plain_forward(*copy.model, tokens);
  const SequenceId sequence = copy.executor->cells().create();
  Pass pass = chain_pass(*copy.executor, sequence, tokens);
  pass.hidden_at = all_boundaries(*copy.model);
  const PassResult& result = copy.executor->forward(pass);
  const auto n_embd = static_cast<size_t>(copy.model->config().n_embd);
  const auto n_vocab = static_cast<size_t>(copy.model->config().n_vocab);
  for (size_t b = 0; b < plain.states.size(); ++b) {
    double worst = 0;
    for (size_t row = 0; row < tokens.size(); ++row) {
      worst = std::max(worst, max_difference(result.hidden(b, row),
                                             std::span(plain.states[b]).subspan(row * n_embd, n_embd)));
    }
    EXPECT_LE(worst / largest_magnitude(plain.states[b]), kTolerance) << name << ", boundary " << b;
  }
  double worst = 0;
  for (size_t row = 0; row < tokens.size(); ++row) {
    worst = std::max(worst, max_difference(result.logits(row),
                                           std::span(plain.logits).subspan(row * n_vocab, n_vocab)));
  }
  EXPECT_LE(worst / largest_magnitude(plain.logits), kTolerance) << name << ", logits";
}

TEST(HiddenStates, LlamaEqualsAPlainForwardPass) {
  for (const char* name : {"tiny-llama", "tiny-llama-bias", "tiny-llama-fused-bias", "tiny-llama-linear",
                           "tiny-llama-yarn", "tiny-llama-rope3", "tiny-llama-split"}) {
    expect_equals_plain(name);
  }
}

TEST(HiddenStates, Qwen2EqualsAPlainForwardPass) {
  for (const char* name : {"tiny-qwen2", "tiny-qwen2-untied", "tiny-qwen2-fused", "tiny-qwen2-yarn"}) {
    expect_equals_plain(name);
  }
}

TEST(HiddenStates, Qwen3EqualsAPlainForwardPass) {
  for (const char* name : {"tiny-qwen3", "tiny-qwen3-fused", "tiny-qwen3-yarn"}) {
    expect_equals_plain(name);
  }
}

TEST(HiddenStates, Gemma3EqualsAPlainForwardPass) {
  for (const char* name : {"tiny-gemma3", "tiny-gemma3-global", "tiny-gemma3-softcap",
                           "tiny-gemma3-linear", "tiny-gemma3-pattern", "tiny-gemma3-layers"}) {
    expect_equals_plain(name);
  }
}

TEST(HiddenStates, OtherNormsAndMlpsEqualAPlainForwardPass) {
  for (const char* name : {"tiny-olmo2", "tiny-olmo2-fused", "tiny-olmo3", "tiny-hunyuan",
                           "tiny-stablelm", "tiny-starcoder2", "tiny-nemotron", "tiny-arcee"}) {
    expect_equals_plain(name);
  }
}

TEST(HiddenStates, ParallelBlocksEqualAPlainForwardPass) {
  for (const char* name : {"tiny-command-r", "tiny-cohere2"}) expect_equals_plain(name);
}

TEST(HiddenStates, OnlyTheRowsAndBoundariesAskedFor) {
  const F32Copy copy("tiny-qwen3");
  const auto tokens = random_tokens(*copy.model, 12, 9);
  const SequenceId sequence = copy.executor->cells().create();
  Pass pass = chain_pass(*copy.executor, sequence, tokens);
  pass.hidden_at = all_boundaries(*copy.model);
  std::vector<std::vector<float>> all;  // [boundary * rows + row]
  std::vector<float> last_logits;
  {
    const PassResult& result = copy.executor->forward(pass);
    for (size_t b = 0; b < pass.hidden_at.size(); ++b) {
      for (size_t row = 0; row < tokens.size(); ++row) {
        all.emplace_back(result.hidden(b, row).begin(), result.hidden(b, row).end());
      }
    }
    last_logits.assign(result.logits(11).begin(), result.logits(11).end());
  }
  pass.hidden_at = {0, 3, 6};
  for (size_t row = 0; row < tokens.size(); ++row) {
    pass.rows[row].hidden = row % 5 == 1;
    pass.rows[row].logits = row == 11;
  }
  const PassResult& result = copy.executor->forward(pass);
  for (size_t at = 0; at < pass.hidden_at.size(); ++at) {
    for (const size_t row : {1u, 6u, 11u}) {
      const auto& expected = all[static_cast<size_t>(pass.hidden_at[at]) * tokens.size() + row];
      EXPECT_EQ(max_difference(result.hidden(at, row), expected), 0.0) << at << ", row " << row;
    }
  }
  EXPECT_EQ(max_difference(result.logits(11), last_logits), 0.0);
}

// Each block alone, on the states that the full pass had before it: several stretches
// of the text at once, each as a branch that sees the committed text before it. What
// comes out is what the full pass had behind that block.
void expect_blocks_equal_the_full_pass(const std::string& name) {
  const F32Copy copy(name);
  Executor& executor = *copy.executor;
  const auto n_embd = static_cast<size_t>(copy.model->config().n_embd);
  const auto tokens = random_tokens(*copy.model, kTokens, 11);
  const SequenceId sequence = executor.cells().create();
  Pass full = chain_pass(executor, sequence, tokens);
  full.hidden_at = all_boundaries(*copy.model);
  std::vector<std::vector<float>> states(full.hidden_at.size());  // [boundary][row * n_embd + i]
  const PassResult& result = executor.forward(full);
  for (size_t b = 0; b < states.size(); ++b) {
    for (size_t row = 0; row < tokens.size(); ++row) {
      states[b].insert(states[b].end(), result.hidden(b, row).begin(), result.hidden(b, row).end());
    }
  }
  std::vector<NodeId> path;
  for (const Row& row : full.rows) path.push_back(row.node);
  executor.cells().commit(sequence, path);

  constexpr size_t kLength = 3;
  const size_t starts[] = {0, 1, 17, 30, kTokens - kLength};
  const int n_layers = copy.model->config().n_layers;
  for (int block = 0; block < 2 * n_layers; ++block) {
    Pass pass;
    pass.layers = LayerSet::none(n_layers);
    pass.layers->set(BlockId{block}, true);
    pass.hidden_at = {2 * n_layers};
    std::vector<float> entering;
    std::vector<size_t> places;
    for (const size_t start : starts) {
      std::optional<NodeId> node;
      for (size_t i = start; i < start + kLength; ++i) {
        node = i == start ? executor.cells().branch_at(sequence, Position{static_cast<int32_t>(start)})
                          : executor.cells().extend(sequence, node);
        pass.rows.push_back({.sequence = sequence, .node = node.value(), .hidden = true});
        const auto state = std::span(states[static_cast<size_t>(block)]).subspan(i * n_embd, n_embd);
        entering.insert(entering.end(), state.begin(), state.end());
        places.push_back(i);
      }
    }
    pass.states = entering;
    const PassResult& alone = executor.forward(pass);
    const auto& expected = states[static_cast<size_t>(block) + 1];
    for (size_t row = 0; row < places.size(); ++row) {
      EXPECT_EQ(max_difference(alone.hidden(0, row),
                               std::span(expected).subspan(places[row] * n_embd, n_embd)),
                0.0)
          << name << ", block " << block << ", position " << places[row];
    }
    executor.cells().rollback(sequence);
  }
}

TEST(HiddenStates, SingleBlocksOnGivenStatesEqualTheFullPass) {
  for (const char* name : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"}) {
    expect_blocks_equal_the_full_pass(name);
  }
}

}  // namespace
}  // namespace forerun
