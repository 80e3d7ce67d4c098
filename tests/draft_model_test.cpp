// A second model drafts. With the same weights all it drafts is right, whatever the sampling: which
// it is only if its cache follows the text.
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "support/engine_options.h"
#include "support/gguf_builder.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

constexpr int kDraftTokens = 5;

SpeculationOptions drafting(const std::filesystem::path& model, const std::string& accept = "match") {
  SpeculationOptions options;
  options.method = "draft";
  options.accept = accept;
  options.options = {{"draft-model", model.string()},
                     {"draft-threshold", "0"},
                     {"draft-tokens", std::to_string(kDraftTokens)}};
  return options;
}

// A model of its own that agrees with tiny-llama-f32 in every bit.
class Twin {
 public:
  Twin() { write_twin(model_file("tiny-llama-f32"), path()); }
  std::filesystem::path path() const { return folder_.file("twin.gguf"); }

 private:
  TempDir folder_;
};

constexpr int kSteps = 10;  // if all drafts are right

Request request_for(const Engine& engine, const std::string& prompt, float temperature, uint64_t seed) {
  Request request{.prompt = engine.tokenizer().tokenize(prompt)};
  request.options.max_tokens = 1 + kSteps * (kDraftTokens + 1);
  request.options.ignore_eos = true;
  request.options.sampling.temperature = temperature;
  request.options.sampling.seed = seed;
  return request;
}

// Longer than what a draft's first pass reads.
const std::string kLong =
    "The moon and the sea were talking about the weather, and the sea said that it had seen many a "
    "storm, but none like the one that came when the old ship went down with all its lanterns lit.";

TEST(DraftModel, TheSameWeightsAgree) {
  const Twin twin;
  Engine engine(engine_options("tiny-llama-f32"));
  const SpeculationId id = engine.add_speculation(drafting(twin.path()));
  for (const std::string& prompt : {std::string("The sea"), kLong, kLong + " And then"}) {
    for (const float temperature : {0.0f, 1.0f}) {
      Request request = request_for(engine, prompt, temperature, 5);
      request.options.sampling.repeat_penalty = 1.1f;
      const Generation plain = engine.generate(request);
      request.speculation = id;
      const Generation drafted = engine.generate(request);
      EXPECT_EQ(drafted.tokens, plain.tokens);
      EXPECT_EQ(drafted.speculation.accept_rate(), 1.0) << prompt << ", temperature " << temperature;
      EXPECT_EQ(drafted.speculation.n_steps, kSteps);
    }
  }
}

// Their own noise, but the same distribution: every ratio is 1.
TEST(DraftModel, ThePapersRulesTakeAllOfIt) {
  const Twin twin;
  Engine engine(engine_options("tiny-llama-f32"));
  for (const char* accept : {"leviathan", "rejection"}) {
    Request request = request_for(engine, kLong, 1.0f, 6);
    request.speculation = engine.add_speculation(drafting(twin.path(), accept));
    const Generation drafted = engine.generate(request);
    EXPECT_EQ(drafted.speculation.accept_rate(), 1.0) << accept;
    EXPECT_EQ(drafted.speculation.n_steps, kSteps) << accept;
  }
}

// How often each pair of tokens follows the first one.
std::map<std::vector<TokenId>, int> pairs(Engine& engine, SpeculationId speculation, uint64_t first_seed,
                                          int n) {
  std::vector<RequestId> ids;
  for (int i = 0; i < n; ++i) {
    Request request =
        request_for(engine, "My favourite animal is the", 1.0f, first_seed + static_cast<uint64_t>(i));
    request.options.sampling.top_k = 3;
    request.options.max_tokens = 4;
    request.speculation = speculation;
    ids.push_back(engine.submit(request));
  }
  while (engine.step()) {
  }
  std::map<std::vector<TokenId>, int> counts;
  for (const RequestId id : ids) {
    std::vector<TokenId> tokens = engine.take(id).value().tokens;
    ++counts[{tokens[1], tokens[2]}];
  }
  return counts;
}

// Other draws, the same distribution: the chi-squared statistic of two samples of one size is about
// its degrees of freedom d, with a deviation of sqrt(2 d). (Seeds are given: this cannot fail by
// chance.) With a real model and its draft model, whose distributions overlap without being the same.
TEST(DraftModel, ThePapersRulesKeepTheDistribution) {
  constexpr int kDraws = 500;
  Engine engine(engine_options("smollm2", {.n_parallel = 32, .n_context = 64}));
  const auto plain = pairs(engine, SpeculationId{0}, 1, kDraws);
  for (const char* accept : {"target", "leviathan", "rejection"}) {
    SpeculationOptions options = drafting(model_file("smollm2-draft"), accept);
    options.options["draft-tokens"] = "2";
    auto found = pairs(engine, engine.add_speculation(options), 1'000'000, kDraws);
    double statistic = 0;
    int n_cells = 0;
    auto all = plain;
    for (const auto& [tokens, n] : found) all[tokens] += n;
    for (const auto& [tokens, n] : all) {
      if (n < 10) continue;
      const auto before = plain.find(tokens);
      const int expected = before != plain.end() ? before->second : 0;
      const double difference = found[tokens] - expected;
      statistic += difference * difference / n;
      ++n_cells;
    }
    EXPECT_GE(n_cells, 10) << "or nothing is tested";
    EXPECT_LT(statistic, n_cells + 4 * std::sqrt(2.0 * n_cells)) << accept;
  }
}

// The text may take what was drafted and read, but not verified. How much is pruned by cost is for
// the machine to say.
TEST(DraftModel, DraftsThatArePrunedDoNoHarm) {
  const Twin twin;
  Engine engine(engine_options("tiny-llama-f32"));
  for (const std::string tree : {"auto", "roofline", "2"}) {
    SpeculationOptions options = drafting(twin.path());
    options.tree = tree;
    Request request = request_for(engine, kLong, 1.0f, 3);
    const Generation plain = engine.generate(request);
    request.speculation = engine.add_speculation(options);
    const Generation drafted = engine.generate(request);
    EXPECT_EQ(drafted.tokens, plain.tokens) << tree;
    const DraftCounts total = drafted.speculation.total();
    // The planner proposes what is next likeliest too.
    if (tree != "auto") {
      EXPECT_EQ(total.n_accepted, total.n_drafted) << tree;
    }
    if (tree == "2") {
      EXPECT_EQ(drafted.speculation.n_steps, kSteps * (kDraftTokens + 1) / 3);
    }
  }
}

// More requests than slots, some of which draft while others read their prompts.
TEST(DraftModel, RequestsDraftTogether) {
  const Twin twin;
  Engine engine(engine_options("tiny-llama-f32", {.n_parallel = 3}));
  const SpeculationId id = engine.add_speculation(drafting(twin.path()));
  std::vector<Generation> plain;
  std::vector<RequestId> ids;
  for (uint64_t seed = 1; seed <= 7; ++seed) {
    Request request = request_for(engine, seed % 2 == 0 ? kLong : "The moon", 1.0f, seed);
    request.options.max_tokens = 20 + 7 * static_cast<int>(seed);
    plain.push_back(engine.generate(request));
    request.speculation = id;
    ids.push_back(engine.submit(request));
  }
  while (engine.step()) {
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const Generation drafted = engine.take(ids[i]).value();
    EXPECT_EQ(drafted.tokens, plain[i].tokens) << i;
    EXPECT_EQ(drafted.speculation.accept_rate(), 1.0) << i;
  }
}

// Other weights: nearly nothing is right, and nothing is wrong.
TEST(DraftModel, AStrangerDoesNoHarm) {
  Engine engine(engine_options("tiny-llama-f32"));
  const SpeculationId id = engine.add_speculation(drafting(model_file("tiny-llama")));
  Request request = request_for(engine, kLong, 1.0f, 9);
  const Generation plain = engine.generate(request);
  request.speculation = id;
  const Generation drafted = engine.generate(request);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_LT(drafted.speculation.accept_rate(), 0.3);
}

// To the last token of the context, and cancelled half way.
TEST(DraftModel, EndsWherePlainDecodingEnds) {
  const Twin twin;
  EngineOptions options = engine_options("tiny-llama-f32");
  options.n_context = 140;
  Engine engine(options);
  const SpeculationId id = engine.add_speculation(drafting(twin.path()));
  Request request = request_for(engine, kLong, 0.0f, 1);
  request.options.max_tokens = 1000;
  const Generation plain = engine.generate(request);
  EXPECT_EQ(plain.stop_reason, StopReason::kContextFull);
  request.speculation = id;
  const Generation drafted = engine.generate(request);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.stop_reason, StopReason::kContextFull);
  int n_asked = 0;
  request.is_cancelled = [&] { return ++n_asked > 3; };
  EXPECT_EQ(engine.generate(request).stop_reason, StopReason::kCancelled);
  request.is_cancelled = {};
  const Generation again = engine.generate(request);
  EXPECT_EQ(again.tokens, plain.tokens);
  EXPECT_EQ(again.speculation.accept_rate(), 1.0) << "the cancelled request left its place";
}

std::string error_of(Engine& engine, const SpeculationOptions& options) {
  try {
    engine.add_speculation(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(DraftModel, WhatCannotDraftIsAnErrorThatSaysWhy) {
  Engine engine(engine_options("tiny-llama-f32"));
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_PRED2(contains, error_of(engine, drafting(model_file("tiny-llama-f32"))),
               "is the model itself");
  EXPECT_PRED2(contains, error_of(engine, drafting(model_file("tiny-gemma3"))),
               "its token 0 is '<pad>'");
  EXPECT_PRED2(contains, error_of(engine, {.method = "draft"}), "--draft-model");
  SpeculationOptions nowhere = drafting(model_file("tiny-llama-f16"));
  nowhere.options["draft-device"] = "nowhere";
  EXPECT_PRED2(contains, error_of(engine, nowhere), "no device 'nowhere'");
  EXPECT_PRED2(contains,
               error_of(engine, {.method = "draft", .options = {{"draft-model", "no-such-model"}}}),
               "no-such-model");
}

TEST(DraftModel, ALargerOneIsAWarning) {
  std::vector<std::string> warnings;
  EngineOptions options = engine_options("tiny-llama-q8_0");
  options.warn = [&](std::string_view line) { warnings.emplace_back(line); };
  Engine engine(options);
  engine.add_speculation(drafting(model_file("tiny-llama-f32")));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings.front().find("larger"), std::string::npos);
}

}  // namespace
}  // namespace forerun
