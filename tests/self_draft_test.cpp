// The model drafting for itself. With no block left out a draft is the model's own text, so
// that every token of it must be accepted, whatever the sampling: which it is only if drafts
// read the right keys and values, at the right positions, and draw with the right noise.
#include <forerun/benchmark.h>
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "support/domain_files.h"
#include "support/engine.h"
#include "support/engine_options.h"
#include "support/model_files.h"
#include "support/temp_dir.h"
#include "support/zeroed_blocks.h"

namespace forerun {
namespace {

using namespace test;

constexpr int kTokens = 5;

Engine make_engine(const std::string& model, int n_parallel = 1) {
  return Engine(engine_options(model, {.n_parallel = n_parallel}));
}

SpeculationId whole_model(Engine& engine, const std::string& accept, bool siblings = false,
                          const std::string& threshold = "0") {
  SpeculationOptions options;
  options.method = "uniform";
  options.accept = accept;
  options.options = {{"uniform-skip", "0"},
                     {"uniform-threshold", threshold},
                     {"uniform-tokens", std::to_string(kTokens)},
                     {"uniform-siblings", siblings ? "true" : "false"}};
  return engine.add_speculation(options);
}

Request request_for(const Engine& engine, float temperature, uint64_t seed) {
  Request request{.prompt = engine.tokenizer().tokenize("The moon and the sea were talking about the")};
  request.options.max_tokens = 1 + 8 * (kTokens + 1);
  request.options.ignore_eos = true;
  request.options.sampling.temperature = temperature;
  request.options.sampling.seed = seed;
  return request;
}

TEST(SelfDraft, TheWholeModelAgreesWithItself) {
  for (const char* model : {"tiny-llama", "tiny-gemma3", "tiny-gemma4-e", "tiny-qwen3", "tiny-qwen3moe",
                            "tiny-gpt-oss", "smollm2"}) {
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
// may share, and the text stays plain decoding's. The blocks that a domain leaves out add nothing,
// so that every draft must be accepted. Whether `auto` drafts at all is for what passes cost here.
TEST(SelfDraft, LayersByPrompt) {
  const TempDir folder;
  std::filesystem::path path = model_file("smollm2");
  const int n_layers = test::load_model(path)->config().n_layers;
  for (const double skip : kDomainSkips) {
    const auto zeroed = folder.file(std::to_string(skip) + ".gguf");
    write_without(uniform_layers(n_layers, skip), path, zeroed);
    path = zeroed;
  }
  write_domains(*test::load_model(path), folder.file("domains.json"));
  EngineOptions engine_with = engine_options("smollm2", {.n_parallel = 2});
  engine_with.model = path.string();
  Engine engine(engine_with);
  for (const std::string method : {"knnssd", "auto"}) {
    SpeculationOptions options;
    options.method = method;
    options.options = {{"auto-layers", "knnssd"},
                       {"knnssd-domains", folder.file("domains.json").string()},
                       {"knnssd-threshold", "0"},
                       {"knnssd-tokens", std::to_string(kTokens)}};
    const SpeculationId drafting = engine.add_speculation(options);
    for (const char* prompt : {"One, two, three, four,", "The ship was slow and old. The sea was"}) {
      Request request = request_for(engine, 0, 1);
      request.prompt = engine.tokenizer().tokenize(prompt);
      const Generation plain = engine.generate(request);
      engine.forget_contexts();
      request.speculation = drafting;
      const RequestId beside = engine.submit(request_for(engine, 0, 2));
      const Generation drafted = engine.generate(request);
      EXPECT_EQ(drafted.tokens, plain.tokens) << method;
      if (method == "knnssd") {
        EXPECT_EQ(drafted.speculation.n_steps, 8);
        EXPECT_EQ(drafted.speculation.accept_rate(), 1.0);
      }
      while (!engine.take(beside)) engine.step();
    }
  }
}

// A threshold that rounding cannot move a token across: in the middle of the widest gap between
// their probabilities.
double widest_gap(std::vector<double> chances) {
  std::sort(chances.begin(), chances.end());
  size_t widest = 1;
  for (size_t i = 1; i < chances.size(); ++i) {
    if (chances[i] - chances[i - 1] > chances[widest] - chances[widest - 1]) widest = i;
  }
  return (chances[widest - 1] + chances[widest]) / 2;
}

// A chain ends behind the first token that is not sure. The whole model drafts its own text, so
// that the text's probabilities say how long every draft is, whatever text it is.
TEST(SelfDraft, AChainEndsBehindATokenThatIsNotSure) {
  Engine engine = make_engine("smollm2");
  Request request = request_for(engine, 0, 1);
  request.options.sampling.n_logprobs = 0;
  std::vector<double> chances;
  for (const TokenLogprobs& token : engine.generate(request).logprobs) {
    chances.push_back(std::exp(static_cast<double>(token.chosen.logprob)));
  }
  const double between = widest_gap({chances.begin() + 1, chances.end()});
  for (const double threshold : {0.0, between, 1.0}) {
    // No token is quite certain.
    const auto is_sure = [&](double chance) { return threshold < 1 && chance >= threshold; };
    std::vector<int64_t> expected;
    for (size_t at = 1; at < chances.size(); at += static_cast<size_t>(expected.back()) + 1) {
      const size_t max_tokens = std::min<size_t>(kTokens, chances.size() - at - 1);
      size_t n = 0;
      while (n < max_tokens && is_sure(chances[at + n])) ++n;
      expected.push_back(static_cast<int64_t>(std::min(n + 1, max_tokens)));
    }
    request.speculation = whole_model(engine, "match", /*siblings=*/false, std::to_string(threshold));
    request.benchmark = std::make_shared<BenchmarkRecord>();
    const Generation drafted = engine.generate(request);
    std::vector<int64_t> found;
    for (const DraftCounts& step : request.benchmark->steps) found.push_back(step.n_drafted);
    EXPECT_EQ(found, expected) << threshold;
    EXPECT_EQ(drafted.speculation.accept_rate(), 1.0) << threshold;
  }
}

// Behind the same text a chain is the same with siblings beside it: as much of it is accepted, and
// where it is wrong a sibling may be right. A model without a quarter of its blocks is unsure and
// wrong often enough.
TEST(SelfDraft, SiblingsStandBesideTheChain) {
  Engine engine = make_engine("smollm2");
  const auto drafting = [&](const char* siblings) {
    SpeculationOptions options;
    options.method = "uniform";
    options.options = {{"uniform-skip", "0.25"},
                       {"uniform-threshold", "0"},
                       {"uniform-tokens", std::to_string(kTokens)},
                       {"uniform-siblings", siblings}};
    return engine.add_speculation(options);
  };
  const SpeculationId chains = drafting("false"), trees = drafting("true");
  Request request = request_for(engine, 0, 1);
  const std::vector<TokenId> text = engine.generate(request).tokens;
  request.options.max_tokens = 1 + (kTokens + 1);
  int n_wider = 0, n_better = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    request.prompt.push_back(text[at]);
    if (at % 4 != 0) continue;
    const auto first_step = [&](SpeculationId speculation) {
      request.speculation = speculation;
      request.benchmark = std::make_shared<BenchmarkRecord>();
      engine.generate(request);
      return request.benchmark->steps.front();
    };
    const DraftCounts chain = first_step(chains);
    const DraftCounts tree = first_step(trees);
    EXPECT_EQ(chain.n_drafted, kTokens);
    EXPECT_GE(tree.n_drafted, chain.n_drafted);
    EXPECT_GE(tree.n_accepted, chain.n_accepted);
    n_wider += tree.n_drafted > chain.n_drafted ? 1 : 0;
    n_better += tree.n_accepted > chain.n_accepted ? 1 : 0;
  }
  EXPECT_GT(n_wider, 0);
  EXPECT_GT(n_better, 0);
}

}  // namespace
}  // namespace forerun
