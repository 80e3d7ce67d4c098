#include "request/prompt_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

std::vector<float> copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

TEST(PromptState, IsTheMeanAndTheLastOfRowsOfOneSize) {
  PromptState state;
  EXPECT_EQ(state.n_rows(), 0);
  EXPECT_TRUE(state.mean().empty() && state.last().empty());
  state.add(std::vector<float>{3, -3, 3, -3});
  EXPECT_EQ(copy(state.last()), (std::vector<float>{1, -1, 1, -1}));
  EXPECT_EQ(copy(state.mean()), copy(state.last()));
  state.add(std::vector<float>{0, 0, 0.02f, 0});  // a small row counts as much as a large one
  EXPECT_FLOAT_EQ(state.last()[2], 2);
  EXPECT_FLOAT_EQ(state.mean()[0], 0.5);
  EXPECT_FLOAT_EQ(state.mean()[2], 1.5);
  state.add(std::vector<float>{0, 0, 0, 0});  // no direction
  EXPECT_EQ(state.n_rows(), 3);
  EXPECT_EQ(copy(state.last()), (std::vector<float>(4, 0)));
  EXPECT_FLOAT_EQ(state.mean()[2], 1);
}

TEST(PromptState, DoesNotDependOnThePassesThatReadIt) {
  const test::TempDir folder;
  test::tiny_model({.n_layers = 3, .n_vocab = 300}).write(folder.file("model.gguf"));
  const std::shared_ptr<const Model> model =
      Model::load(GgufFile::open(folder.file("model.gguf")),
                  Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false}));
  std::vector<TokenId> prompt;
  for (int i = 0; i < 50; ++i) prompt.push_back(TokenId{(31 * i + 7) % 300});
  std::vector<PromptState> states;
  for (const int max_rows : {64, 7}) {
    Executor executor(model, {.kv = {.n_cells = 256}, .max_rows = max_rows});
    const int n_free = executor.cells().n_free();
    states.push_back(read_prompt_state(executor, prompt).value());
    EXPECT_EQ(executor.cells().n_free(), n_free);
    EXPECT_EQ(states.back().n_rows(), 50);
    const std::vector<TokenId> too_long(257, TokenId{1});
    EXPECT_FALSE(read_prompt_state(executor, too_long).has_value());
  }
  EXPECT_EQ(copy(states[0].mean()), copy(states[1].mean()));
  EXPECT_EQ(copy(states[0].last()), copy(states[1].last()));
  EXPECT_NE(copy(states[0].mean()), copy(states[0].last()));
  double squares = 0;
  for (const float x : states[0].last()) squares += x * x;
  EXPECT_NEAR(squares / static_cast<double>(states[0].last().size()), 1, 1e-5);
}

}  // namespace
}  // namespace forerun
