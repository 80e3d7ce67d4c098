// The model drafting for itself. With no block left out a draft is the model's own text, so
// that every token of it must be accepted, whatever the sampling: which it is only if drafts
// read the right keys and values, at the right positions, and draw with the right noise.
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/domain_files.h"
#include "support/engine.h"
#include "support/engine_options.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

constexpr int kTokens = 5;

Engine make_engine(const std::string& model, int n_parallel = 1) {
  return Engine(engine_options(model, {.n_parallel = n_parallel}));
}

SpeculationId whole_model(Engine& engine, const std::string& accept, bool siblings = false) {
  SpeculationOptions options;
  options.method = "uniform";
  options.accept = accept;
  options.options = {{"uniform-skip", "0"},
                     {"uniform-threshold", "0"},
                     {"uniform-tokens", std::to_string(kTokens)},
                     {"uniform-siblings", siblings ? "true" : "false"}};
  return engine.add_speculation(options);
}

Request request_for(const Engine& engine, float temperature, uint64_t seed) {
  Request request{.prompt = engine.tokenize("The moon and the sea were talking about the")};
  request.options.max_tokens = 1 + 8 * (kTokens + 1);
  request.options.ignore_eos = true;
  request.options.sampling.temperature = temperature;
  request.options.sampling.seed = seed;
  return request;
}

TEST(SelfDraft, TheWholeModelAgreesWithItself) {
  for (const char* model : {"tiny-llama", "tiny-gemma3", "tiny-qwen3", "smollm2"}) {
    Engine engine = make_engine(model);
    const SpeculationId drafting = whole_model(engine, "match");
    for (const float temperature : {0.0f, 1.0f}) {
      Request request = request_for(engine, temperature, 5);
      request.options.sampling.repeat_penalty = 1.1f;
      const Generation plain = engine.generate(request);
      request.speculation = drafting;
      const Generation drafted = engine.generate(request);
      EXPECT_EQ(drafted.tokens, plain.tokens) << model;
      EXPECT_EQ(drafted.speculation.n_steps, 8) << model << ", temperature " << temperature;
      EXPECT_EQ(drafted.speculation.accept_rate(), 1.0) << model << ", temperature " << temperature;
    }
  }
}

// Their own noise, but the same distribution: every ratio is 1.
TEST(SelfDraft, TheWholeModelPassesThePapersRules) {
  Engine engine = make_engine("tiny-llama");
  for (const char* accept : {"leviathan", "rejection"}) {
    const SpeculationId drafting = whole_model(engine, accept, /*siblings=*/true);
    for (const float temperature : {0.0f, 1.0f}) {
      Request request = request_for(engine, temperature, 6);
      request.speculation = drafting;
      const Generation drafted = engine.generate(request);
      EXPECT_EQ(drafted.speculation.accept_rate(), 1.0) << accept << ", temperature " << temperature;
      EXPECT_EQ(drafted.speculation.n_steps, 8) << accept;
    }
  }
}

TEST(SelfDraft, RequestsDraftTogether) {
  Engine engine = make_engine("tiny-llama", 3);
  const SpeculationId drafting = whole_model(engine, "match", /*siblings=*/true);
  std::vector<Generation> plain;
  std::vector<RequestId> ids;
  for (uint64_t seed = 1; seed <= 7; ++seed) {
    Request request = request_for(engine, 1.0f, seed);
    plain.push_back(engine.generate(request));
    request.speculation = drafting;
    ids.push_back(engine.submit(request));
  }
  while (engine.step()) {
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const Generation drafted = engine.take(ids[i]).value();
    EXPECT_EQ(drafted.tokens, plain[i].tokens);
    EXPECT_EQ(drafted.speculation.n_steps, 8);
  }
}

// Layers by prompt: the state that chooses them comes with the prompt's own pass, which others
// may share, and the text stays plain decoding's.
TEST(SelfDraft, LayersByPrompt) {
  const TempDir folder;
  write_domains(*test::load_model(model_file("smollm2")), folder.file("domains.json"));
  Engine engine = make_engine("smollm2", 2);
  for (const char* method : {"knnssd", "auto"}) {
    SpeculationOptions options;
    options.method = method;
    options.options = {{"auto-layers", "knnssd"},
                       {"knnssd-domains", folder.file("domains.json").string()}};
    const SpeculationId drafting = engine.add_speculation(options);
    for (const char* prompt : {"One, two, three, four,", "The ship was slow and old. The sea was"}) {
      Request request = request_for(engine, 0, 1);
      request.prompt = engine.tokenize(prompt);
      const Generation plain = engine.generate(request);
      engine.forget_contexts();
      request.speculation = drafting;
      const RequestId beside = engine.submit(request_for(engine, 0, 2));
      const Generation drafted = engine.generate(request);
      EXPECT_EQ(drafted.tokens, plain.tokens) << method;
      EXPECT_GT(drafted.speculation.total().n_accepted, 0) << method;
      while (!engine.take(beside)) engine.step();
    }
  }
}

// A chain ends behind the first token that is not sure, and siblings fill the tree.
TEST(SelfDraft, ThresholdAndSiblings) {
  Engine engine = make_engine("smollm2");
  std::map<std::string, SpeculationStatistics> found;
  for (const char* threshold : {"0", "0.8", "1"}) {
    for (const char* siblings : {"false", "true"}) {
      SpeculationOptions options;
      options.method = "uniform";
      options.options = {{"uniform-skip", "0.05"},
                         {"uniform-threshold", threshold},
                         {"uniform-tokens", "4"},
                         {"uniform-siblings", siblings}};
      Request request = request_for(engine, 0, 1);
      request.speculation = engine.add_speculation(options);
      found[std::string(threshold) + siblings] = engine.generate(request).speculation;
    }
  }
  EXPECT_EQ(found["0false"].by_depth.size(), 4u);
  EXPECT_EQ(found["1false"].by_depth.size(), 1u);
  EXPECT_EQ(found["1false"].total().n_drafted, found["1false"].n_steps);
  EXPECT_LT(found["0.8false"].total().n_drafted, found["0false"].total().n_drafted);
  EXPECT_GT(found["0.8false"].accept_rate(), found["0false"].accept_rate());
  for (const char* threshold : {"0", "0.8", "1"}) {
    const std::string name = threshold;
    EXPECT_GT(found[name + "true"].total().n_drafted, found[name + "false"].total().n_drafted);
    EXPECT_GE(found[name + "true"].tokens_per_step(), found[name + "false"].tokens_per_step());
  }
}

}  // namespace
}  // namespace forerun
