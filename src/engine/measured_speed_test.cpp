#include "engine/measured_speed.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "cost/guessed_costs.h"
#include "engine/byte_model.h"
#include "engine/loaded_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

class MeasuredSpeedTest : public ::testing::Test {
 protected:
  MeasuredSpeedTest() : loaded_(load()) {}

  static LoadedModel load() {
    const test::TempDir folder;
    byte_model().write(folder.file("model.gguf"));
    return load_model(folder.file("model.gguf"), {.name = "cpu", .n_threads = 1, .pin_threads = false});
  }
  LayerSet full() const { return LayerSet::full(loaded_.model->config().n_layers); }

  LoadedModel loaded_;
  Executor executor_{loaded_.model, ExecutorOptions{.kv = {.n_cells = 2048}, .max_rows = 256}};
  PassCosts costs_{guess_costs(executor_)};
};

// How fast is nothing a test can say; that drafts are made and prompts are read once it can.
TEST_F(MeasuredSpeedTest, DraftsWithTheLayers) {
  const auto texts = write_answers(
      executor_,
      {loaded_.vocabulary.tokenize("one two three"), loaded_.vocabulary.tokenize("another text")},
      {.n_tokens = 24});
  ASSERT_EQ(texts.size(), 2u);
  ASSERT_LE(AnswerTimer::n_cells(texts), executor_.cells().n_free());
  const int n_free = executor_.cells().n_free();
  {
    MeasuredSpeed objective(executor_, costs_, loaded_.vocabulary, {.tokens = 6, .threshold = 0}, texts);
    const int n_graphs = executor_.n_graphs_built();
    LayerSet layers = full();
    layers.set(mlp_block(1), false);
    for (int i = 0; i < 10; ++i) EXPECT_GT(objective.speedup(layers), 0);
    EXPECT_GT(executor_.n_graphs_built(), n_graphs) << "other layers, other graphs";
    EXPECT_TRUE(objective.is_noisy());
  }
  EXPECT_EQ(executor_.cells().n_free(), n_free);
}

TEST_F(MeasuredSpeedTest, NeedsAnswers) {
  EXPECT_THROW(MeasuredSpeed(executor_, costs_, loaded_.vocabulary, {}, {}), Error);
  EXPECT_THROW(MeasuredSpeed(executor_, costs_, loaded_.vocabulary, {},
                             {{.tokens = {TokenId{1}}, .n_prompt = 1}}),
               Error);
}

}  // namespace
}  // namespace forerun
