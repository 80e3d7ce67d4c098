// A model in several parts computes what it does in one, bit for bit: whatever may be in a pass, in
// random order, by both at once. The parts are all on the CPU, but know nothing of each other.

#include "support/spread_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/engine.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

constexpr int kCells = 512;

// Two executors that are asked the same.
class Both {
 public:
  Both(Executor& whole, Executor& spread, uint32_t seed)
      : whole_(whole), spread_(spread), random_(seed), n_layers_(whole.model().config().n_layers) {}
  ~Both() {
    for (const SequenceId sequence : sequences_) remove(sequence);
  }

  void step() {
    const uint32_t what = random_() % 8;
    if (sequences_.size() < 2 || (what == 0 && sequences_.size() < 5)) return create();
    if (what == 1) return fork();
    if (what == 2 && sequences_.size() > 3) {
      remove(sequences_.front());
      sequences_.erase(sequences_.begin());
      return;
    }
    const size_t n = what == 3 ? 40 + random_() % 40 : 1 + random_() % 12;
    pass(n, /*is_chain=*/random_() % 2 == 0);
  }
  int n_compared() const { return n_compared_; }

 private:
  // The same of both, which agree in it.
  template <typename F>
  auto of_both(F f) {
    auto result = f(whole_.cells());
    EXPECT_EQ(f(spread_.cells()), result);
    return result;
  }
  size_t pick(size_t n) { return random_() % n; }
  bool maybe(int times, int of) { return static_cast<int>(pick(static_cast<size_t>(of))) < times; }
  SequenceId any() { return sequences_[pick(sequences_.size())]; }

  void create() {
    sequences_.push_back(of_both([](KvCells& cells) { return cells.create(); }));
  }
  void remove(SequenceId sequence) {
    whole_.cells().remove(sequence);
    spread_.cells().remove(sequence);
  }
  void fork() {
    const SequenceId source = any();
    const auto n = static_cast<int>(pick(static_cast<size_t>(whole_.cells().n_committed(source)) + 1));
    if (sequences_.size() < 5)
      sequences_.push_back(of_both([&](KvCells& cells) { return cells.fork(source, n); }));
  }

  // Rows of one or two sequences, each a chain or a tree.
  void add_rows(SequenceId sequence, size_t n, bool is_chain) {
    std::vector<NodeId> nodes;
    for (size_t i = 0; i < n && whole_.cells().n_free() > 0; ++i) {
      std::optional<NodeId> parent;
      if (!nodes.empty() && (is_chain || maybe(2, 3))) parent = is_chain ? nodes.back() : nodes[pick(i)];
      const auto node = of_both([&](KvCells& cells) { return cells.extend(sequence, parent); });
      nodes.push_back(node.value());
      pass_.rows.push_back(
          {.sequence = sequence,
           .node = *node,
           .token = random_tokens(whole_.model(), 1, static_cast<uint32_t>(random_())).front(),
           .logits = maybe(1, 2),
           .hidden = maybe(1, 3)});
    }
  }

  void pass(size_t n, bool is_chain) {
    pass_ = {};
    const SequenceId first = any(), second = any();
    add_rows(first, n, is_chain);
    if (second != first && maybe(1, 2)) add_rows(second, n / 2, is_chain);
    if (pass_.rows.empty()) return remove_all();
    // Drafts of all kinds, then the model itself, whose keys and values are kept.
    if (maybe(1, 2)) {
      choose_results();
      pass_.layers = maybe(1, 4)
                         ? LayerSet::first_blocks(n_layers_, static_cast<int>(pick(2 * n_layers_ + 1)))
                         : random_layer_set(n_layers_, random_);
      if (maybe(1, 4)) only_block(static_cast<int>(pick(2 * n_layers_)));
      compare();
      pass_.layers.reset();
      pass_.states = {};
    }
    choose_results();
    compare();
    keep_some(first);
    if (second != first) keep_some(second);
  }

  void remove_all() {
    for (const SequenceId sequence : sequences_) remove(sequence);
    sequences_.clear();
  }

  void choose_results() {
    const bool wants_logits = maybe(4, 5);
    pass_.hidden_at.clear();
    for (int b = 0; b <= 2 * n_layers_; ++b) {
      if (maybe(1, 3)) pass_.hidden_at.push_back(b);
    }
    if (maybe(1, 3)) pass_.hidden_at.clear();
    for (Row& row : pass_.rows) row.logits = wants_logits && maybe(1, 2);
    if (wants_logits && maybe(1, 2)) pass_.rows.back().logits = true;
  }

  // On states of its own.
  void only_block(int block) {
    pass_.layers = LayerSet::none(n_layers_);
    pass_.layers->set(BlockId{block}, true);
    std::normal_distribution<float> normal;
    states_.resize(pass_.rows.size() * static_cast<size_t>(whole_.model().config().n_embd));
    for (float& x : states_) x = normal(random_);
    pass_.states = states_;
  }

  void compare() {
    const PassResult& expected = whole_.forward(pass_);
    const PassResult& found = spread_.forward(pass_);
    for (size_t r = 0; r < pass_.rows.size(); ++r) {
      if (pass_.rows[r].logits) {
        ASSERT_EQ(max_difference(found.logits(r), expected.logits(r)), 0.0) << "row " << r;
        ++n_compared_;
      }
      for (size_t at = 0; at < pass_.hidden_at.size() && pass_.rows[r].hidden; ++at) {
        ASSERT_EQ(max_difference(found.hidden(at, r), expected.hidden(at, r)), 0.0)
            << "row " << r << ", boundary " << pass_.hidden_at[at];
        ++n_compared_;
      }
    }
  }

  void keep_some(SequenceId sequence) {
    std::vector<NodeId> path;
    for (const Row& row : pass_.rows) {
      if (row.sequence != sequence) continue;
      const auto parent = whole_.cells().parent(row.sequence, row.node);
      const bool goes_on = path.empty() ? !parent : parent == path.back();
      if (goes_on && maybe(5, 6)) path.push_back(row.node);
    }
    for (KvCells* cells : {&whole_.cells(), &spread_.cells()}) {
      path.empty() ? cells->rollback(sequence) : cells->commit(sequence, path);
    }
  }

  Executor& whole_;
  Executor& spread_;
  std::mt19937 random_;
  int n_layers_;
  std::vector<SequenceId> sequences_;
  Pass pass_;
  std::vector<float> states_;
  int n_compared_ = 0;
};

void expect_same_bits(const std::string& name, KvType type = KvType::kF16) {
  SCOPED_TRACE(name);
  const auto whole = load_model(model_file(name));
  const auto executor = make_executor(whole, type, kCells);
  uint32_t seed = 0;
  for (const Placement& placement : some_placements(whole->config())) {
    SCOPED_TRACE(placement.where());
    const auto spread = load_spread(model_file(name), placement, /*n_threads=*/seed % 2 == 0 ? 1 : 2);
    ASSERT_TRUE(spread->has_blocks());
    ASSERT_GE(spread->parts().size(), 2u);
    const auto in_parts = make_executor(spread, type, kCells);
    Both both(*executor, *in_parts, ++seed);
    for (int i = 0; i < 25 && !testing::Test::HasFatalFailure(); ++i) both.step();
    EXPECT_GT(both.n_compared(), 50);
  }
}

TEST(SpreadModel, DenseModelsHaveTheSameBits) {
  for (const char* name :
       {"tiny-llama", "tiny-llama-q4_k", "tiny-llama-iq3_s", "tiny-qwen2", "tiny-qwen3", "tiny-olmo2",
        "tiny-granite", "tiny-glm4", "tiny-mistral3", "tiny-stablelm", "tiny-nemotron"}) {
    expect_same_bits(name);
  }
}

TEST(SpreadModel, ModelsWithWindowsHaveTheSameBits) {
  for (const char* name :
       {"tiny-gemma2", "tiny-gemma4", "tiny-gemma3-pattern", "tiny-olmo3", "tiny-exaone4-windows"})
    expect_same_bits(name);
}

TEST(SpreadModel, ModelsWithParallelBlocksHaveTheSameBits) {
  for (const char* name : {"tiny-command-r", "tiny-cohere2"}) expect_same_bits(name);
}

TEST(SpreadModel, MixturesHaveTheSameBits) {
  for (const char* name : {"tiny-mixtral-q4_0", "tiny-qwen2moe", "tiny-gemma4-moe", "tiny-deepseek2",
                           "tiny-llama4", "tiny-qwen3moe", "tiny-granitemoe", "tiny-ernie-moe",
                           "tiny-glm4moe", "tiny-gpt-oss", "tiny-gpt-oss-mxfp4"}) {
    expect_same_bits(name);
  }
}

TEST(SpreadModel, OtherCachesHaveTheSameBits) {
  expect_same_bits("tiny-llama", KvType::kQ8_0);
  expect_same_bits("tiny-gpt-oss", KvType::kF32);
}

// Each weight is one part's, and so are the keys and values of each layer.
TEST(SpreadModel, NothingIsThereTwice) {
  for (const char* name : {"tiny-llama-q4_0", "tiny-qwen3moe"}) {
    const auto whole = load_model(model_file(name));
    const size_t n_whole = whole->parts().front().storage.packed.size();
    for (const Placement& placement : some_placements(whole->config())) {
      const auto spread = load_spread(model_file(name), placement);
      size_t n_bytes = 0;
      std::vector<int> n_owners(static_cast<size_t>(whole->config().n_layers));
      for (const ModelPart& part : spread->parts()) {
        n_bytes += part.storage.packed.size();
        const KvCache cache(whole->config(), part, {.n_cells = kCells});
        for (size_t layer = 0; layer < n_owners.size(); ++layer)
          n_owners[layer] += cache.keys(static_cast<int>(layer)) != nullptr ? 1 : 0;
      }
      EXPECT_EQ(n_bytes, n_whole) << name << ": " << placement.where();
      EXPECT_EQ(n_owners, std::vector<int>(n_owners.size(), 1));
    }
  }
}

TEST(SpreadModel, MixturesStayWhereTheyAreKept) {
  const auto file = model_file("tiny-glm4moe");
  const ModelConfig config = load_model(file)->config();
  ASSERT_GT(config.experts.n_dense_layers, 0);
  const auto model = load_spread(file, placement_on_cpu({config.n_layers + 1}, 0, /*cpu_experts=*/true));
  ASSERT_EQ(model->parts().size(), 2u);
  for (int layer = 0; layer < config.n_layers; ++layer) {
    const auto part_of = [&](BlockId block) {
      return model->part_of_block()[static_cast<size_t>(to_int(block))];
    };
    EXPECT_EQ(part_of(attention_block(layer)), 1);
    EXPECT_EQ(part_of(mlp_block(layer)), config.has_experts(layer) ? 0 : 1);
  }
  EXPECT_EQ(model->head_part(), 1);
}

// Files do not say how a model was spread.
TEST(SpreadModel, SavedContextsGoOnInOtherParts) {
  const TempDir folder;
  const auto path = folder.file("context.bin");
  const auto whole = load_model(model_file("tiny-gemma3"));
  const auto spread =
      load_spread(model_file("tiny-gemma3"), placement_on_cpu({2, 1}, whole->config().n_layers - 2));
  const auto tokens = random_tokens(*whole, 50, 1), more = random_tokens(*whole, 7, 2);
  for (const bool from_whole : {true, false}) {
    const auto one = make_executor(from_whole ? whole : spread),
               other = make_executor(from_whole ? spread : whole);
    const SequenceId sequence = one->cells().create();
    read_and_commit(*one, sequence, tokens);
    one->save(sequence, tokens, path);
    const auto restored = other->restore(path);
    ASSERT_TRUE(restored.has_value());
    EXPECT_EQ(restored->tokens, tokens);
    EXPECT_EQ(max_difference(read_and_commit(*other, restored->sequence, more),
                             read_and_commit(*one, sequence, more)),
              0.0);
  }
}

TEST(SpreadModel, APartWithoutRoomForItsCacheSaysSoInALine) {
  const auto model = load_spread(model_file("tiny-llama"), placement_on_cpu({2}, 3));
  try {
    make_executor(model, KvType::kF16, 1 << 30);
    FAIL() << "there was room";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    const std::string said = error.what();
    EXPECT_NE(said.find("a context of"), said.npos) << said;
    EXPECT_NE(said.find("cpu has"), said.npos) << said;
    EXPECT_EQ(said.find('\n'), said.npos);
  }
}

}  // namespace
}  // namespace forerun
