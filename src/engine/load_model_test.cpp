// Loading whole models, on small ones made here.
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/byte_model.h"
#include "engine/loaded_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

// While the weights fail to load, another thread reads the vocabulary of the same file.
TEST(LoadModel, FailsCleanly) {
  const test::TempDir folder;
  const auto path = folder.file("model.gguf");
  test::GgufBuilder builder = byte_model();
  builder.remove_tensor("blk.1.ffn_up.weight");
  builder.write(path);
  for (int i = 0; i < 20; ++i)
    EXPECT_THROW(load_model(path, {.name = "cpu", .n_threads = 1, .pin_threads = false}), Error);
  EXPECT_THROW(load_model(path, {.name = "abacus"}), Error);
  test::tiny_model({.n_vocab = 7}).write(path);
  EXPECT_THROW(load_model(path, {.name = "cpu"}), Error) << "no vocabulary";
}

}  // namespace
}  // namespace forerun
