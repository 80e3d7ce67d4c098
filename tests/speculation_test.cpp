// Speculation changes nothing but speed: with every method, greedy and seeded, alone and
// among other requests, with any number of threads, the tokens are those of plain decoding.
#include <forerun/benchmark.h>
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/methods.h"
#include "gguf/gguf_file.h"
#include "model/model.h"
#include "stopping/disco.h"
#include "support/domain_files.h"
#include "support/engine.h"
#include "support/engine_options.h"
#include "support/gguf_builder.h"
#include "support/layer_files.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

const std::vector<std::string> kPrompts = {
    "List the months of the year, then list them again.",
    "Repeat this sentence three times: the cat sat on the mat and looked at the moon.",
    "Write a short poem about rain.",
    "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return",
};

std::vector<GenerationOptions> ways_to_sample(int n_tokens) {
  GenerationOptions greedy;
  greedy.sampling.temperature = 0;
  greedy.max_tokens = n_tokens;
  GenerationOptions seeded = greedy;
  seeded.sampling.temperature = 0.8f;
  seeded.sampling.seed = 42;
  GenerationOptions penalised = seeded;
  penalised.sampling.repeat_penalty = 1.2f;
  penalised.sampling.frequency_penalty = 0.1f;
  penalised.stop = {"\n\n"};
  return {greedy, seeded, penalised};
}

// Every prompt in every way, `n_parallel` of them at once. `known`: what comes of that.
std::vector<Generation> answers(Engine& engine, SpeculationId speculation, int n_tokens,
                                const std::vector<Generation>& known = {},
                                std::span<const std::string> prompts = kPrompts) {
  std::vector<RequestId> ids;
  for (const std::string& prompt : prompts) {
    for (const GenerationOptions& options : ways_to_sample(n_tokens)) {
      Request request{
          .prompt = engine.tokenizer().tokenize(prompt), .options = options, .speculation = speculation};
      if (!known.empty()) {
        request.benchmark = std::make_shared<BenchmarkRecord>();
        request.benchmark->known_answer = known[ids.size()].tokens;
      }
      ids.push_back(engine.submit(std::move(request)));
    }
  }
  while (engine.step()) {
  }
  std::vector<Generation> result;
  for (const RequestId id : ids) result.push_back(engine.take(id).value());
  return result;
}

void expect_equal(const std::vector<Generation>& found, const std::vector<Generation>& expected,
                  const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens) << what << ", request " << i;
    EXPECT_EQ(found[i].text, expected[i].text) << what;
    EXPECT_EQ(found[i].stop_reason, expected[i].stop_reason) << what;
  }
}

int64_t n_accepted(const std::vector<Generation>& generations) {
  int64_t n = 0;
  for (const Generation& generation : generations) n += generation.speculation.total().n_accepted;
  return n;
}

int64_t n_accepted_of_model(const std::vector<Generation>& generations) {
  int64_t n = 0;
  for (const Generation& generation : generations) {
    for (const DraftSource source : {DraftSource::kLayers, DraftSource::kDraftModel}) {
      n += generation.speculation.by_source[static_cast<size_t>(source)].n_accepted;
    }
  }
  return n;
}

// The options that a method needs, whose files are written for a model.
class NeededOptions {
 public:
  // `draft`: a model with the same vocabulary.
  NeededOptions(const std::string& model, std::string draft) : draft_(std::move(draft)) {
    const auto weights = load_model(model_file(model));
    write_domains(*weights, file("domains"));
    write_layers(*weights, 0.1, file("layers"));
  }

  SpeculationOptions of(const std::string& method) const {
    SpeculationOptions options;
    options.method = method;
    options.live_datastore = file(method + " texts");
    if (method == "selfsd") options.options = {{"selfsd-layers", file("layers").string()}};
    if (method == "knnssd") options.options = {{"knnssd-domains", file("domains").string()}};
    if (method == "draft") options.options = {{"draft-model", model_file(draft_).string()}};
    return options;
  }

 private:
  std::filesystem::path file(const std::string& name) const { return folder_.file(name); }

  TempDir folder_;
  std::string draft_;
};

void every_method_gives_the_same_text(const std::string& model, const std::string& draft, int n_tokens,
                                      int n_threads, bool drafts_are_taken) {
  const NeededOptions needed(model, draft);
  Engine engine(engine_options(model, {.n_threads = n_threads, .n_parallel = 6, .n_context = 512}));
  const auto expected = answers(engine, SpeculationId{0}, n_tokens);
  const auto compare = [&](const SpeculationOptions& options, const std::string& what,
                           bool reads_texts) {
    const SpeculationId id = engine.add_speculation(options);
    auto found = answers(engine, id, n_tokens);
    expect_equal(found, expected, what);
    if (!reads_texts) return found;
    // The second time the datastore has the answers.
    auto again = answers(engine, id, n_tokens);
    expect_equal(again, expected, what + " again");
    return again;
  };
  for (const MethodInfo& method : draft_methods()) {
    const std::string name(method.name);
    const bool reads_texts = method.drafts_with == DraftsWith::kTexts || method.drafts_with_many;
    const auto found = compare(needed.of(name), name, reads_texts);
    // Layers are left out of a model that can spare some, below.
    if (!drafts_are_taken || name == "none" || method.drafts_with == DraftsWith::kLayers) continue;
    EXPECT_GT(n_accepted(found), 0) << name;
  }
  SpeculationOptions both = needed.of("draft");
  both.method = "auto";
  const auto found = compare(both, "auto with a draft model", /*reads_texts=*/true);
  if (drafts_are_taken) {
    EXPECT_GT(n_accepted(found), n_accepted_of_model(found));
  }
}

TEST(Speculation, EveryMethodGivesTheSameText) {
  every_method_gives_the_same_text("smollm2", "smollm2-draft", 32, 1, true);
}

TEST(Speculation, EveryMethodGivesTheSameTextWithWindows) {
  every_method_gives_the_same_text("tiny-gemma3", "tiny-gemma3-global", 40, 2, false);
  every_method_gives_the_same_text("tiny-gemma4-e", "tiny-gemma4-moe", 40, 2, false);
}

// Half of this model's blocks do next to nothing, so whoever leaves out layers has drafts to verify.
TEST(Speculation, EveryChoiceOfLayersGivesTheSameText) {
  const std::string model = "smollm2-deep";
  const std::span<const std::string> prompt(&kPrompts[1], 1);
  constexpr int kTokens = 64;
  const NeededOptions needed(model, "smollm2");
  Engine engine(engine_options(model, {.n_parallel = 6, .n_context = 512}));
  const auto expected = answers(engine, SpeculationId{0}, kTokens, {}, prompt);
  for (const MethodInfo& method : draft_methods()) {
    const std::string name(method.name);
    if (method.drafts_with != DraftsWith::kLayers && !method.drafts_with_many) continue;
    SpeculationOptions options = needed.of(name);
    // An answer is too short to wait for time to choose in.
    if (const std::string share = name + "-share"; has_method_option(share))
      options.options[share] = "1";
    const auto found = answers(engine, engine.add_speculation(options), kTokens, {}, prompt);
    expect_equal(found, expected, name);
    // Of several drafters, which drafts here is for costs to say.
    EXPECT_GT(method.drafts_with_many ? n_accepted(found) : n_accepted_of_model(found), 0) << name;
  }
}

uint64_t fingerprint_of(const std::string& model) {
  return model_fingerprint(GgufFile::open(model_file(model)));
}

// A classifier that goes on behind probable tokens.
void write_classifier(const ModelPair& models, const std::filesystem::path& path) {
  DiscoClassifier classifier{
      .models = models, .rule = {.threshold = 0.6, .max_tokens = 7}, .n_examples = 1, .network = {}};
  DiscoNetwork& network = classifier.network;
  network.scale.fill(1);
  network.hidden_weight.assign(kDiscoFeatures, 0);
  network.hidden_weight[0] = 8;
  network.hidden_bias = {0};
  network.output_weight = {1};
  network.output_bias = -4;
  classifier.save(path);
}

TEST(Speculation, EveryLookaheadGivesTheSameText) {
  const TempDir folder;
  const std::filesystem::path classifier = folder.file("disco.gguf");
  const uint64_t target = fingerprint_of("smollm2"), draft = fingerprint_of("smollm2-draft");
  Engine engine(engine_options("smollm2", {.n_parallel = 6, .n_context = 512}));
  const auto expected = answers(engine, SpeculationId{0}, 24);
  for (const StoppingRuleInfo& lookahead : stopping_rules()) {
    for (const char* method : {"uniform", "draft"}) {
      SpeculationOptions options;
      options.method = method;
      options.options = {{"lookahead", std::string(lookahead.name)},
                         {"lookahead-classifier", classifier.string()},
                         {"draft-model", model_file("smollm2-draft").string()}};
      write_classifier({.target = target, .draft = options.method == "draft" ? draft : target},
                       classifier);
      const auto found = answers(engine, engine.add_speculation(options), 24, expected);
      const std::string what = std::string(method) + " " + std::string(lookahead.name);
      expect_equal(found, expected, what);
      int64_t n_drafted = 0;
      for (const Generation& generation : found) n_drafted += generation.speculation.total().n_drafted;
      // Whether these drafts pay at all is for costs to say.
      EXPECT_TRUE(n_drafted > 0 || lookahead.name == "cost") << what;
    }
  }
}

// Not even where what it is told is wrong. The model that drafts is always right, so that drafts end
// where what is told does.
TEST(Speculation, AnAnswerThatIsToldChangesNoText) {
  const TempDir folder;
  write_twin(model_file("tiny-llama-f32"), folder.file("twin.gguf"));
  Engine engine(engine_options("tiny-llama-f32", {.n_threads = 1, .n_context = 512}));
  SpeculationOptions options;
  options.method = "draft";
  options.options = {{"lookahead", "oracle"}, {"draft-model", folder.file("twin.gguf").string()}};
  const SpeculationId oracle = engine.add_speculation(options);
  Request request{.prompt = engine.tokenizer().tokenize(kPrompts[0]), .options = ways_to_sample(30)[0]};
  request.options.ignore_eos = true;
  const Generation plain = engine.generate(request);
  request.speculation = oracle;
  EXPECT_THROW(engine.submit(request), Error) << "there is no record";
  request.benchmark = std::make_shared<BenchmarkRecord>();
  EXPECT_THROW(engine.submit(request), Error) << "nothing is told";
  double most = 0;
  for (const size_t n_right : {size_t{0}, plain.tokens.size() / 2, plain.tokens.size()}) {
    std::vector<TokenId> told = plain.tokens;
    for (size_t i = n_right; i < plain.tokens.size(); ++i) {
      told[i] = TokenId{plain.tokens[i] == TokenId{5} ? 6 : 5};
    }
    told.resize(plain.tokens.size() + 3, TokenId{5});
    request.benchmark->known_answer = told;
    const Generation found = engine.generate(request);
    EXPECT_EQ(found.tokens, plain.tokens);
    EXPECT_GT(found.speculation.tokens_per_step(), most) << "the more is right, the longer drafts are";
    most = found.speculation.tokens_per_step();
    int64_t n_drafted = 0;
    for (const DraftCounts& step : request.benchmark->steps) n_drafted += step.n_drafted;
    EXPECT_EQ(n_drafted, found.speculation.total().n_drafted);
    EXPECT_EQ(static_cast<int64_t>(request.benchmark->steps.size()), found.speculation.n_steps);
  }
}

TEST(Speculation, ThreadsAndBatchesMakeNoDifference) {
  std::vector<Generation> expected;
  for (const auto& [n_threads, n_parallel] : {std::pair{1, 1}, {2, 4}, {3, 12}}) {
    Engine engine(
        engine_options("smollm2", {.n_threads = n_threads, .n_parallel = n_parallel, .n_context = 512}));
    SpeculationOptions options;
    options.method = "sssd";
    options.tree = "12";
    const auto found = answers(engine, engine.add_speculation(options), 30);
    if (expected.empty()) expected = answers(engine, SpeculationId{0}, 30);
    expect_equal(found, expected, std::to_string(n_threads) + " threads");
  }
}

// The end of the context, of the answer and of the text fall inside drafts.
TEST(Speculation, EndsWherePlainDecodingEnds) {
  EngineOptions options = engine_options("tiny-llama", {.n_context = 512});
  options.n_context = 100;
  Engine engine(options);
  SpeculationOptions speculation;
  speculation.method = "pld";
  speculation.tree = "16";
  const SpeculationId drafting = engine.add_speculation(speculation);
  for (int n = -1; n < 30; ++n) {
    Request request{.prompt = engine.tokenizer().tokenize("one two three one two three one two")};
    request.options.max_tokens = n;
    request.options.sampling.temperature = 0;
    const Generation plain = engine.generate(request);
    request.speculation = drafting;
    const Generation drafted = engine.generate(request);
    EXPECT_EQ(drafted.tokens, plain.tokens) << n;
    EXPECT_EQ(drafted.stop_reason, plain.stop_reason) << n;
  }
}

// The papers' rules give other texts, but texts all the same.
TEST(Speculation, OtherRulesRun) {
  Engine engine(engine_options("tiny-llama", {.n_parallel = 2, .n_context = 512}));
  for (const char* rule : {"target", "leviathan", "rejection"}) {
    SpeculationOptions options;
    options.method = "suffix";
    options.accept = rule;
    for (const Generation& generation : answers(engine, engine.add_speculation(options), 40)) {
      const StopReason reason = generation.stop_reason;
      const bool has_ended = reason == StopReason::kEndOfText || reason == StopReason::kStop;
      EXPECT_TRUE(has_ended || generation.tokens.size() == 40) << rule;
    }
  }
}

TEST(Speculation, AStoreThatCannotBeUsedCostsNoAnswer) {
  EngineOptions options = engine_options("tiny-llama", {.n_context = 512});
  std::vector<std::string> warnings;
  options.warn = [&](std::string_view line) { warnings.emplace_back(line); };
  Engine engine(options);
  const TempDir folder;
  SpeculationOptions live;
  live.live_datastore = folder.file("store");
  const SpeculationId writer = engine.add_speculation(live);
  const auto expected = answers(engine, writer, 8);
  EXPECT_TRUE(warnings.empty());

  // It is being written, so others read it.
  const SpeculationId second = engine.add_speculation(live);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("is being written by process"), std::string::npos) << warnings[0];
  const auto again = answers(engine, second, 8);
  expect_equal(again, expected, "while another writes");
  int64_t n_from_store = 0;
  for (const Generation& generation : again) n_from_store += generation.speculation.total().n_accepted;
  EXPECT_GT(n_from_store, 0);

  // It cannot be made.
  std::ofstream(folder.file("file")) << "in the way";
  live.live_datastore = folder.file("file") / "store";
  expect_equal(answers(engine, engine.add_speculation(live), 8), expected, "no store");
  EXPECT_EQ(warnings.size(), 2u);

  // It is damaged.
  SpeculationOptions reading;
  reading.datastores = {folder.file("store")};
  std::ofstream(folder.file("store") / "manifest") << "forerun datastore 1\nnonsense\n";
  expect_equal(answers(engine, engine.add_speculation(reading), 8), expected, "damaged");
  EXPECT_EQ(warnings.size(), 3u);
}

TEST(Speculation, BadOptionsAreErrors) {
  Engine engine(engine_options("tiny-llama", {.n_context = 512}));
  const auto fails = [&](const std::function<void(SpeculationOptions&)>& change) {
    SpeculationOptions options;
    change(options);
    EXPECT_THROW(engine.add_speculation(options), Error);
  };
  fails([](auto& options) { options.method = "magic"; });
  fails([](auto& options) { options.accept = "always"; });
  fails([](auto& options) { options.tree = "0"; });
  fails([](auto& options) { options.tree = "many"; });
  fails([](auto& options) { options.options = {{"pld-ngram", "three"}}; });
  fails([](auto& options) { options.options = {{"no-such", "1"}}; });
  fails([](auto& options) { options.method = "knnssd"; });
  fails([](auto& options) {
    options.method = "knnssd";
    options.options = {{"knnssd-domains", "/no/such/file"}};
  });
  fails([](auto& options) { options.datastores = {"/no/such/folder"}; });
  EXPECT_THROW(engine.submit({.prompt = {TokenId{1}}, .speculation = SpeculationId{99}}), Error);
}

}  // namespace
}  // namespace forerun
