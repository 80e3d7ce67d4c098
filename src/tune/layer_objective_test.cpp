#include "tune/layer_objective.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "cost/guessed_costs.h"
#include "engine/stepper_fixture.h"

namespace forerun {
namespace {

class MeasuredSpeedTest : public StepperTest {
 protected:
  LayerSet full() const { return LayerSet::full(loaded_->model->config().n_layers); }

  Executor wide_{loaded_->model, ExecutorOptions{.kv = {.n_cells = 2048}, .max_rows = 256}};
  PassCosts costs_{guess_costs(wide_)};
};

// How fast is nothing a test can say; that drafts are made and prompts are read once it can.
TEST_F(MeasuredSpeedTest, DraftsWithTheLayers) {
  const auto texts =
      answer_prompts(wide_, loaded_->vocabulary, {tokens("one two three"), tokens("another text")},
                     {.generation = greedy(24)});
  ASSERT_EQ(texts.size(), 2u);
  ASSERT_LE(AnswerTimer::n_cells(texts), wide_.cells().n_free());
  const int n_free = wide_.cells().n_free();
  {
    MeasuredSpeed objective(wide_, costs_, loaded_->vocabulary, {.tokens = 6, .threshold = 0}, texts);
    const int n_graphs = wide_.n_graphs_built();
    LayerSet layers = full();
    layers.set(mlp_block(1), false);
    for (int i = 0; i < 10; ++i) EXPECT_GT(objective.speedup(layers), 0);
    EXPECT_GT(wide_.n_graphs_built(), n_graphs) << "other layers, other graphs";
    EXPECT_TRUE(objective.is_noisy());
  }
  EXPECT_EQ(wide_.cells().n_free(), n_free);
}

TEST_F(MeasuredSpeedTest, NeedsAnswers) {
  EXPECT_THROW(MeasuredSpeed(wide_, costs_, loaded_->vocabulary, {}, {}), Error);
  EXPECT_THROW(
      MeasuredSpeed(wide_, costs_, loaded_->vocabulary, {}, {{.tokens = {TokenId{1}}, .n_prompt = 1}}),
      Error);
}

}  // namespace
}  // namespace forerun
