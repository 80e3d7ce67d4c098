// Every GPU computes what the CPU computes, as far as its arithmetic allows.
//
// Weights that are floats differ by rounding alone: GPUs multiply in another order, and
// in half precision where the CPU does not. Products with quantised weights round the
// activations to 8 bits as well, in other blocks and with other scales than the CPU: two
// roundings that each move a logit by up to some percent of the largest. A wrong mask,
// position, cell or block moves the average logit by more than a tenth. Skipped where
// there is no GPU.

#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/distance.h"
#include "support/engine.h"
#include "support/engine_options.h"
#include "support/model_files.h"
#include "support/spread_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const DeviceInfo& device : Device::list()) {
    if (device.name != "cpu") names.push_back(device.name);
  }
  return names;
}

// Runs the same things on any device and gathers what came out.
struct Outputs {
  std::vector<float> logits;
  std::vector<float> hidden;
};

Outputs run_everything(const std::shared_ptr<const Model>& model) {
  Outputs outputs;
  const auto executor = make_executor(model);
  const int n_layers = model->config().n_layers;
  const SequenceId sequence = executor->cells().create();
  const auto keep = [&](const std::vector<float>& logits) {
    outputs.logits.insert(outputs.logits.end(), logits.begin(), logits.end());
  };
  // A prompt, then single steps: the same graph again and again.
  const auto tokens = random_tokens(*model, 60, 7);
  keep(read_and_commit(*executor, sequence, std::span(tokens).first(50)));
  for (size_t i = 50; i < tokens.size(); ++i) {
    keep(read_and_commit(*executor, sequence, std::span(tokens).subspan(i, 1)));
  }
  // A tree, with all layers and with some, and the states between blocks.
  std::mt19937 random(8);
  Pass pass;
  std::vector<NodeId> nodes;
  for (size_t i = 0; i < 12; ++i) {
    const size_t parent = random() % (nodes.size() + 1);
    nodes.push_back(
        executor->cells()
            .extend(sequence, parent == nodes.size() ? std::nullopt : std::optional(nodes[parent]))
            .value());
    pass.rows.push_back({.sequence = sequence,
                         .node = nodes.back(),
                         .token = tokens[i],
                         .logits = true,
                         .hidden = i % 3 == 0});
  }
  pass.hidden_at = {0, 1, n_layers, 2 * n_layers};
  for (const auto& layers :
       {std::optional<LayerSet>(), std::optional(random_layer_set(n_layers, random))}) {
    pass.layers = layers;
    const PassResult& result = executor->forward(pass);
    for (size_t row = 0; row < pass.rows.size(); ++row) {
      const auto logits = result.logits(row);
      outputs.logits.insert(outputs.logits.end(), logits.begin(), logits.end());
      for (size_t at = 0; pass.rows[row].hidden && at < pass.hidden_at.size(); ++at) {
        const auto hidden = result.hidden(at, row);
        outputs.hidden.insert(outputs.hidden.end(), hidden.begin(), hidden.end());
      }
    }
  }
  return outputs;
}

// The model on a GPU, computed by ggml's kernels whether ours serve it or not.
std::shared_ptr<const Model> load_on_ggmls_kernels(const std::string& name, const std::string& gpu) {
  setenv("FORERUN_KERNELS", "ggml", 1);
  auto device = Device::open({.name = gpu});
  unsetenv("FORERUN_KERNELS");
  return Model::load(GgufFile::open(model_file(name)), std::move(device));
}

// Adds the logits behind drafted tokens, each of which hangs below the one that `parents` names, or
// below the text.
void add_logits_of_draft(Executor& executor, SequenceId sequence, std::span<const TokenId> tokens,
                         std::span<const std::optional<size_t>> parents, std::vector<float>& all) {
  Pass pass;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto parent = parents[i] ? std::optional(pass.rows[*parents[i]].node) : std::nullopt;
    const auto node = executor.cells().extend(sequence, parent);
    pass.rows.push_back(
        {.sequence = sequence, .node = node.value(), .token = tokens[i], .logits = true});
  }
  const PassResult& result = executor.forward(pass);
  for (size_t row = 0; row < tokens.size(); ++row) {
    const auto logits = result.logits(row);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  executor.cells().rollback(sequence);
}

TEST(Gpu, ComputesWhatTheCpuComputes) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  for (const std::string& name : tiny_model_names()) {
    const Outputs expected = run_everything(load_model(model_file(name)));
    for (const std::string& gpu : gpus) {
      std::shared_ptr<const Model> model;
      try {
        model = Model::load(GgufFile::open(model_file(name)), Device::open({.name = gpu}));
      } catch (const Error& error) {
        // A type that this GPU cannot multiply is refused, not computed wrongly.
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << name << ": " << error.what();
        continue;
      }
      const Outputs found = run_everything(model);
      const Distance logits = distance(found.logits, expected.logits);
      const Distance hidden = distance(found.hidden, expected.hidden);
      std::printf("%-24s %s: worst %.4f mean %.5f hidden %.5f\n", name.c_str(), gpu.c_str(),
                  logits.worst, logits.mean, hidden.mean);
      EXPECT_TRUE(are_near(*model, found.logits, expected.logits)) << name << " on " << gpu;
      // States are nearer than what the head makes of them, unless other experts were chosen.
      if (model->config().experts.n_all > 0) continue;
      EXPECT_LE(hidden.mean, logit_bound(*model).mean / 2) << name << " on " << gpu;
    }
  }
}

TEST(Gpu, ComputesWithTheCpuWhatTheCpuComputes) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  const auto device = Device::open({.name = gpus.front(), .n_threads = 2, .pin_threads = false});
  for (const std::string& name : tiny_model_names()) {
    const auto model = load_beside_cpu(model_file(name), device);
    if (model == nullptr || !model->has_blocks()) continue;
    const Outputs expected = run_everything(load_model(model_file(name)));
    const Outputs found = run_everything(model);
    EXPECT_TRUE(are_near(*model, found.logits, expected.logits)) << name;
    if (model->config().experts.n_all > 0) continue;
    EXPECT_LE(distance(found.hidden, expected.hidden).mean, logit_bound(*model).mean / 2) << name;
  }
}

// With the whole model drafting for itself, every draft is right.
TEST(Gpu, TextIsTheSameWithLayersOnTheCpu) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  EngineOptions options = engine_options("smollm2", {.n_threads = 2});
  options.device = gpus.front();
  options.exact = true;
  options.placement.n_gpu_layers = 15;
  Engine engine(options);
  EXPECT_NE(engine.hardware().placement, "");
  Request request{.prompt = engine.tokenizer().tokenize("The moon and the sea were talking about the")};
  request.options.max_tokens = 60;
  request.options.ignore_eos = true;
  request.options.sampling.temperature = 0;
  const Generation plain = engine.generate(request);
  SpeculationOptions drafting{.method = "uniform"};
  drafting.options = {{"uniform-skip", "0"}, {"uniform-threshold", "0"}, {"uniform-tokens", "3"}};
  request.speculation = engine.add_speculation(drafting);
  const Generation drafted = engine.generate(request);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.speculation.accept_rate(), 1.0);
  request.speculation = engine.add_speculation({.method = "auto"});
  EXPECT_EQ(engine.generate(request).tokens, plain.tokens);
}

// What makes exact text possible: in passes that are filled up to a fixed number of rows, a
// chain's logits are the bits of its tokens read one by one.
TEST(Gpu, ChainsInFilledPassesAreExact) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  for (const char* name : {"tiny-llama-q4_1", "tiny-llama-q4_k", "tiny-llama-f16", "smollm2"}) {
    const auto model =
        Model::load(GgufFile::open(model_file(name)), Device::open({.name = gpus.front()}));
    const auto n_vocab = static_cast<size_t>(model->config().n_vocab);
    const auto tokens = random_tokens(*model, 100, 11);
    for (const auto& [width, n_chain] : {std::pair(4, 3u), std::pair(8, 6u), std::pair(16, 7u)}) {
      Executor executor(model, {.kv = {.n_cells = 1024}, .max_rows = 128, .min_rows = width});
      std::vector<float> alone, together;
      for (const auto& [logits, n] : {std::pair(&alone, 1u), std::pair(&together, n_chain)}) {
        const SequenceId sequence = executor.cells().create();
        read_and_commit(executor, sequence, std::span(tokens).first(58));
        for (size_t i = 58; i < tokens.size(); i += n) {
          const auto rows = read_and_commit(executor, sequence, std::span(tokens).subspan(i, n));
          logits->insert(logits->end(), rows.begin(), rows.end());
        }
        executor.cells().remove(sequence);
      }
      ASSERT_EQ(alone.size(), (tokens.size() - 58) * n_vocab);
      EXPECT_EQ(max_difference(alone, together), 0.0) << name << ", " << width << " rows";
    }
  }
}

// Where texts of ggml's kernels part from plain decoding's it is rounding: the rows of a tree, each
// behind tokens that its neighbours in the pass do not see, are as near to what the CPU makes of them as
// those of a chain of as many rows. A mask, a position or a cell that is wrong would put them far away.
TEST(Gpu, TreesOfGgmlsKernelsAreAsNearToTheCpuAsChains) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  constexpr size_t kRows = 16, kRounds = 6;
  for (const char* name : {"smollm2", "smollm2-q8", "tiny-llama-f16"}) {
    const auto cpu = load_model(model_file(name));
    const auto gpu = load_on_ggmls_kernels(name, gpus.front());
    const auto executor_there = make_executor(gpu, KvType::kF16, 1024);
    const auto executor_here = make_executor(cpu, KvType::kF16, 1024);
    std::mt19937 random(3);
    std::vector<float> chains[2], trees[2], alone[2];
    for (size_t round = 0; round < kRounds; ++round) {
      const auto text = random_tokens(*cpu, 60 + 10 * round, static_cast<uint32_t>(round));
      const auto drafts = random_tokens(*cpu, kRows, static_cast<uint32_t>(100 + round));
      std::vector<std::optional<size_t>> chain(kRows), tree(kRows);
      for (size_t i = 1; i < kRows; ++i) {
        chain[i] = i - 1;
        if (const size_t parent = random() % (i + 1); parent < i) tree[i] = parent;
      }
      Executor* const executors[] = {executor_here.get(), executor_there.get()};
      for (size_t side = 0; side < 2; ++side) {
        const SequenceId sequence = executors[side]->cells().create();
        read_and_commit(*executors[side], sequence, text);
        add_logits_of_draft(*executors[side], sequence, drafts, chain, chains[side]);
        add_logits_of_draft(*executors[side], sequence, drafts, tree, trees[side]);
        add_logits_of_draft(*executors[side], sequence, std::span(drafts).first(1), chain, alone[side]);
        executors[side]->cells().remove(sequence);
      }
    }
    const Distance of_chains = distance(chains[1], chains[0]);
    const Distance of_trees = distance(trees[1], trees[0]);
    std::cout << name << ": rows alone " << distance(alone[1], alone[0]) << ", chains " << of_chains
              << ", trees " << of_trees << "\n";
    EXPECT_LE(of_trees.mean, 1.3 * of_chains.mean) << name;
    EXPECT_LE(of_trees.worst, 2 * of_chains.worst) << name;
  }
}

TEST(Gpu, SavesAndRestoresAContext) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  const auto model =
      Model::load(GgufFile::open(model_file("tiny-llama")), Device::open({.name = gpus.front()}));
  const auto executor = make_executor(model);
  const SequenceId sequence = executor->cells().create();
  const auto tokens = random_tokens(*model, 30, 9);
  read_and_commit(*executor, sequence, tokens);
  const test::TempDir folder;
  const auto path = folder.file("context.bin");
  executor->save(sequence, tokens, path);
  const auto more = random_tokens(*model, 3, 10);
  const auto expected = read_and_commit(*executor, sequence, more);
  const auto other = make_executor(model);
  const auto restored = other->restore(path);
  ASSERT_TRUE(restored.has_value());
  EXPECT_LE(max_difference(read_and_commit(*other, restored->sequence, more), expected), 0.05);
}

// The model on one device, the one that drafts on another: with the same weights nearly all that
// is drafted is right, and the text is the same.
TEST(Gpu, ADraftModelMayBeOnAnotherDevice) {
  const auto gpus = gpu_names();
  if (gpus.empty()) GTEST_SKIP() << "no GPU here";
  const std::string& gpu = gpus.front();
  for (const auto& [device, draft_device] :
       {std::pair(gpu, std::string("same")), std::pair(gpu, std::string("cpu")), std::pair(gpu, gpu),
        std::pair(std::string("cpu"), gpu)}) {
    EngineOptions options = engine_options("tiny-llama-f32");
    options.device = device;
    options.exact = true;
    Engine engine(options);
    Request request{
        .prompt = engine.tokenizer().tokenize("The moon and the sea were talking about the weather")};
    request.options.max_tokens = 60;
    request.options.ignore_eos = true;
    request.options.sampling.temperature = 0;
    const Generation plain = engine.generate(request);
    SpeculationOptions drafting{.method = "draft"};
    drafting.options = {{"draft-model", model_file("tiny-llama-f16").string()},
                        {"draft-device", draft_device},
                        {"draft-threshold", "0"}};
    request.speculation = engine.add_speculation(drafting);
    const Generation drafted = engine.generate(request);
    EXPECT_EQ(drafted.tokens, plain.tokens) << device << ", drafts on " << draft_device;
    EXPECT_GT(drafted.speculation.accept_rate(), 0.8) << device << ", drafts on " << draft_device;
  }
}

}  // namespace
}  // namespace forerun
