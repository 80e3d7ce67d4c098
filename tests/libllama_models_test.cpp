// Models that we have no architecture of our own for run through libllama: what comes out is what
// libllama says, for texts, trees, forks and rolled-back drafts alike.
#include <forerun/benchmark.h>
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/both_engines.h"
#include "support/engine.h"
#include "support/engine_options.h"
#include "support/model_files.h"
#include "support/path_oracle.h"

namespace forerun {
namespace {

using namespace test;

// libllama's sums depend on the number of rows.
constexpr double kRounding = 0.02;

class LibllamaModels : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path path_ = model_file(GetParam());
};

TEST_P(LibllamaModels, HaveItsLogits) {
  const auto model = load_model(path_);
  EXPECT_FALSE(model->has_blocks());
  const auto executor = make_executor(model);
  LibLlama reference(path_);
  const auto tokens = random_tokens(*model, 60, 1);
  const BothLogits logits = read_with_both(*executor, reference, tokens, 40);
  EXPECT_LE(max_difference(logits.ours, logits.theirs), kRounding);
}

// Draws a tree behind a text, reads it, compares every node with its path alone, and commits one of
// them.
// Returns how many nodes are not near.
int grow_and_commit(Executor& executor, PathOracle& oracle, SequenceId sequence,
                    std::vector<TokenId>& text, std::mt19937& random) {
  struct Node {
    NodeId id;
    std::vector<NodeId> path;
    std::vector<TokenId> text;
  };
  const bool is_chain = !executor.limits().trees;
  std::vector<Node> nodes;
  Pass pass;
  for (int i = 0; i < 6; ++i) {
    const size_t n = nodes.size();
    const size_t parent = n == 0 ? 0 : is_chain ? n - 1 : random() % (n + 1);
    const Node* above = parent < n ? &nodes[parent] : nullptr;
    Node node{.id = executor.cells()
                        .extend(sequence, above != nullptr ? std::optional(above->id) : std::nullopt)
                        .value(),
              .path = above != nullptr ? above->path : std::vector<NodeId>{},
              .text = above != nullptr ? above->text : text};
    node.path.push_back(node.id);
    node.text.push_back(random_tokens(executor.model(), 1, static_cast<uint32_t>(random())).front());
    pass.rows.push_back(
        {.sequence = sequence, .node = node.id, .token = node.text.back(), .logits = true});
    nodes.push_back(std::move(node));
  }
  const PassResult& result = executor.forward(pass);
  int n_far = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    n_far += max_difference(result.logits(i), oracle.logits(nodes[i].text)) > kRounding ? 1 : 0;
  }
  const Node& chosen = nodes[random() % nodes.size()];
  executor.cells().commit(sequence, chosen.path);
  text = chosen.text;
  return n_far;
}

TEST_P(LibllamaModels, TreesForksAndRollbacksAreTheirPaths) {
  const auto model = load_model(path_);
  const auto executor = make_executor(model);
  PathOracle oracle(model, KvType::kF16);
  std::mt19937 random(2);
  std::vector<TokenId> first = random_tokens(*model, 20, 3);
  const SequenceId a = executor->cells().create();
  read_and_commit(*executor, a, first);
  int n_far = 0;
  for (int i = 0; i < 4; ++i) n_far += grow_and_commit(*executor, oracle, a, first, random);

  // A text that begins alike, and the other one goes on and goes away.
  std::vector<TokenId> second(first.begin(), first.begin() + 12);
  const SequenceId b = executor->cells().fork(a, 12);
  n_far += grow_and_commit(*executor, oracle, b, second, random);
  n_far += grow_and_commit(*executor, oracle, a, first, random);
  executor->cells().remove(a);
  for (int i = 0; i < 3; ++i) n_far += grow_and_commit(*executor, oracle, b, second, random);

  executor->cells().truncate(b, 5);
  second.resize(5);
  n_far += grow_and_commit(*executor, oracle, b, second, random);
  // Where two experts are chosen with nearly the same weight, rounding may choose the other.
  const bool has_experts = GetParam() == "foreign-bailingmoe" || GetParam() == "foreign-mixtral";
  EXPECT_LE(n_far, has_experts ? 3 : 0) << "of 60";
}

TEST_P(LibllamaModels, TextWithDraftsIsTheTextWithout) {
  EngineOptions options = engine_options(GetParam());
  options.n_parallel = 3;
  options.speculation.method = "none";
  Engine engine(options);
  const std::string prompt = "one two three one two three one two three one two";
  const auto answer = [&](SpeculationId speculation, float temperature) {
    GenerationOptions generation;
    generation.max_tokens = 48;
    generation.ignore_eos = true;
    generation.sampling.temperature = temperature;
    generation.sampling.seed = 5;
    const RequestId id = engine.submit({.prompt = engine.tokenizer().tokenize(prompt),
                                        .options = generation,
                                        .speculation = speculation});
    while (engine.step()) continue;
    return engine.take(id).value();
  };
  int64_t n_accepted = 0;
  for (const char* method : {"pld", "sssd", "auto"}) {
    SpeculationOptions speculation;
    speculation.method = method;
    const SpeculationId id = engine.add_speculation(speculation);
    for (const float temperature : {0.0f, 0.8f}) {
      const Generation plain = answer(SpeculationId{0}, temperature), drafted = answer(id, temperature);
      EXPECT_EQ(plain.tokens, drafted.tokens) << method << " at " << temperature;
      n_accepted += drafted.speculation.total().n_accepted;
    }
  }
  EXPECT_GT(n_accepted, 0);
}

TEST_P(LibllamaModels, WhatNeedsLayersIsRefused) {
  EngineOptions options = engine_options(GetParam());
  options.speculation.method = "swift";
  EXPECT_THROW(Engine{options}, Error);
  options.speculation.method = "auto";
  options.exact = true;
  std::string warned;
  options.warn = [&](std::string_view message) { warned += message; };
  Engine engine(options);
  EXPECT_NE(warned.find("libllama"), std::string::npos);
  const RequestId id = engine.submit({.prompt = engine.tokenizer().tokenize("a a a a a a a a")});
  while (engine.step()) continue;
  EXPECT_EQ(engine.take(id).value().speculation.total().n_drafted, 0) << "exact";
  EXPECT_THROW(engine.submit({.prompt = engine.tokenizer().tokenize("a"), .embedding = Pooling::kMean}),
               Error);
}

INSTANTIATE_TEST_SUITE_P(All, LibllamaModels,
                         ::testing::Values("foreign-bailingmoe", "foreign-mixtral", "foreign-phi2",
                                           "foreign-mamba"),
                         [](const auto& of) { return of.param.substr(std::string("foreign-").size()); });

}  // namespace
}  // namespace forerun
