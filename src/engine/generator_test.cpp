// Loading whole models and generating with them, on small ones made here.
#include "engine/generator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "engine/loaded_model.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"
#include "text/test_vocabularies.h"

namespace forerun {
namespace {

constexpr int kContext = 256;

// A model that reads and writes bytes.
test::GgufBuilder byte_model() {
  test::GgufBuilder builder = test::tiny_model({.n_vocab = static_cast<int>(byte_pair_tokens().size())});
  gguf_set_kv(builder.metadata(), make_byte_pair().get());
  return builder;
}

class GeneratorTest : public ::testing::Test {
 protected:
  GeneratorTest() {
    byte_model().write(path_);
    loaded_.emplace(load_model(path_, {.name = "cpu", .n_threads = 1, .pin_threads = false}));
    executor_.emplace(loaded_->model, ExecutorOptions{.kv = {.n_cells = kContext}, .max_rows = 32});
    generator_.emplace(*executor_, loaded_->vocabulary);
  }

  std::vector<TokenId> tokens(const std::string& text) { return loaded_->vocabulary.tokenize(text); }
  static GenerationOptions greedy(int max_tokens) {
    GenerationOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = max_tokens;
    options.ignore_eos = true;
    return options;
  }
  Generation generate(const std::string& prompt, const GenerationOptions& options) {
    return generator_->generate(tokens(prompt), options, {});
  }

  test::TempDir folder_;
  std::filesystem::path path_ = folder_.file("model.gguf");
  std::optional<LoadedModel> loaded_;
  std::optional<Executor> executor_;
  std::optional<Generator> generator_;
};

TEST_F(GeneratorTest, LimitsAndTimings) {
  for (const int n : {0, 1, 20}) {
    const Generation result = generate("Hello", greedy(n));
    EXPECT_EQ(result.tokens.size(), static_cast<size_t>(n));
    EXPECT_EQ(result.stop_reason, StopReason::kLimit);
    EXPECT_EQ(result.timings.n_predicted, n);
  }
  EXPECT_THROW(generate("Hello", greedy(-2)), Error);
  EXPECT_THROW(generator_->generate({}, greedy(1), {}), Error);
}

TEST_F(GeneratorTest, ContinuesFromWhatItHasSeen) {
  const std::string prompt(100, 'a');
  const Generation first = generate(prompt, greedy(10));
  EXPECT_EQ(first.timings.n_cached, 0);
  const Generation again = generate(prompt, greedy(10));
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.timings.n_cached, static_cast<int>(tokens(prompt).size()) - 1);
  const Generation other = generate(prompt.substr(0, 50) + "b", greedy(10));
  EXPECT_EQ(other.timings.n_prompt,
            static_cast<int>(tokens(prompt.substr(0, 50) + "b").size()) - other.timings.n_cached);
  EXPECT_GT(other.timings.n_cached, 0);
  Executor fresh(loaded_->model, {.kv = {.n_cells = kContext}, .max_rows = 32});
  Generator unread(fresh, loaded_->vocabulary);
  EXPECT_EQ(unread.generate(tokens(prompt.substr(0, 50) + "b"), greedy(10), {}).tokens, other.tokens);
}

TEST_F(GeneratorTest, FullContextIsAnOrdinaryEnd) {
  const Generation result = generate("Hello", greedy(-1));
  EXPECT_EQ(result.stop_reason, StopReason::kContextFull);
  EXPECT_EQ(result.tokens.size() + tokens("Hello").size(), size_t{kContext} + 1);
  EXPECT_THROW(generate(std::string(2 * kContext, 'x'), greedy(1)), Error);
  EXPECT_EQ(generate("Hello", greedy(3)).tokens.size(), 3u) << "it can be used again";
}

TEST_F(GeneratorTest, CanBeCancelledAnywhere) {
  // While the prompt is read: three passes of 32 rows, given up before the third.
  int n_asked = 0;
  const Generation early =
      generator_->generate(tokens(std::string(90, 'q')), greedy(5),
                           {.on_text = {}, .is_cancelled = [&] { return ++n_asked > 1; }});
  EXPECT_EQ(early.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(early.tokens.empty());
  // While the answer is made.
  n_asked = 0;
  const Generation late = generator_->generate(
      tokens("Hi"), greedy(50), {.on_text = {}, .is_cancelled = [&] { return ++n_asked > 5; }});
  EXPECT_EQ(late.stop_reason, StopReason::kCancelled);
  EXPECT_FALSE(late.tokens.empty());
  EXPECT_LT(late.tokens.size(), 50u);
  EXPECT_EQ(generate("Hi", greedy(4)).tokens.size(), 4u);
}

TEST_F(GeneratorTest, StreamsTheTextItReturns) {
  std::string streamed;
  const Generation result = generator_->generate(
      tokens("Hi"), greedy(60),
      {.on_text = [&](std::string_view text) { streamed += text; }, .is_cancelled = {}});
  EXPECT_EQ(streamed, result.text);
}

TEST_F(GeneratorTest, StopsAtTextsAndTokens) {
  const Generation whole = generate("Hi", greedy(40));
  GenerationOptions options = greedy(40);
  options.stop_tokens = {whole.tokens[5]};
  const Generation stopped = generate("Hi", options);
  EXPECT_EQ(stopped.stop_reason, StopReason::kStop);
  EXPECT_LE(stopped.tokens.size(), 5u);
  options = greedy(40);
  options.stop = {whole.text.substr(whole.text.size() / 2, 3)};
  const Generation cut = generate("Hi", options);
  EXPECT_EQ(cut.stop_reason, StopReason::kStop);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(options.stop[0])));
}

TEST_F(GeneratorTest, SavesAndRestores) {
  const Generation first = generate("A long beginning", greedy(5));
  generator_->save(folder_.file("cache"));
  Executor executor(loaded_->model, {.kv = {.n_cells = kContext}, .max_rows = 32});
  Generator other(executor, loaded_->vocabulary);
  other.restore(folder_.file("cache"));
  const Generation again = other.generate(tokens("A long beginning"), greedy(5), {});
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.timings.n_prompt, 1);
}

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
