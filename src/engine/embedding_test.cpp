// Requests that want the vector of a text instead of an answer: they share passes and cells with others,
// and neither changes the other's result.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/stepper_fixture.h"
#include "model/final_norm.h"
#include "plan/own_planner.h"
#include "support/failing_device.h"

namespace forerun {
namespace {

constexpr Pooling kAll[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast};
// Longer than a pass, so that it is read in parts.
const std::string kLong = std::string(70, 'x') + "hello world" + std::string(20, 'y');

class EmbeddingTest : public StepperTest {
 protected:
  void TearDown() override { test::fail_at_pass(0); }

  Request wanting(const std::string& text, Pooling pooling) {
    return {.prompt = tokens(text), .embedding = pooling};
  }
  RequestId submit_embedding(const std::string& text, Pooling pooling) {
    return stepper_->submit(wanting(text, pooling));
  }
  std::vector<float> embed(const std::string& text, Pooling pooling) {
    return finish(submit_embedding(text, pooling)).embedding;
  }
  size_t n_embd() const { return static_cast<size_t>(loaded_->model->config().n_embd); }

  // Straight from the model, in one pass.
  std::vector<float> norms_of(const std::vector<TokenId>& text) {
    Executor executor(loaded_->model, {.kv = {.n_cells = kContext}, .max_rows = kContext});
    const SequenceId sequence = executor.cells().create();
    Pass pass;
    pass.hidden_at = {2 * loaded_->model->config().n_layers};
    std::optional<NodeId> node;
    for (const TokenId token : text) {
      node = executor.cells().extend(sequence, node);
      pass.rows.push_back({.sequence = sequence, .node = *node, .token = token, .hidden = true});
    }
    const PassResult& result = executor.forward(pass);
    const FinalNorm norm(*loaded_->model);
    std::vector<float> norms(text.size() * n_embd());
    for (size_t row = 0; row < text.size(); ++row) {
      norm.apply(result.hidden(0, row), std::span(norms).subspan(row * n_embd(), n_embd()));
    }
    return norms;
  }
};

TEST_F(EmbeddingTest, IsTheOutputOfTheFinalNorm) {
  for (const std::string& text : {std::string("h"), std::string("hello world"), kLong}) {
    const std::vector<float> norms = norms_of(tokens(text));
    const size_t n_tokens = tokens(text).size();
    EXPECT_EQ(embed(text, Pooling::kNone), norms) << text;
    const std::vector<float> first(norms.begin(), norms.begin() + static_cast<int>(n_embd()));
    const std::vector<float> last(norms.end() - static_cast<int>(n_embd()), norms.end());
    EXPECT_EQ(embed(text, Pooling::kFirst), first) << text;
    EXPECT_EQ(embed(text, Pooling::kLast), last) << text;
    const std::vector<float> mean = embed(text, Pooling::kMean);
    ASSERT_EQ(mean.size(), n_embd());
    for (size_t i = 0; i < n_embd(); ++i) {
      double sum = 0;
      for (size_t row = 0; row < n_tokens; ++row) sum += static_cast<double>(norms[row * n_embd() + i]);
      EXPECT_NEAR(mean[i], sum / static_cast<double>(n_tokens), 1e-6) << text;
    }
  }
}

TEST_F(EmbeddingTest, HasNoAnswer) {
  const Generation generation = finish(submit_embedding("hello", Pooling::kLast));
  EXPECT_TRUE(generation.text.empty());
  EXPECT_TRUE(generation.tokens.empty());
  EXPECT_EQ(generation.timings.n_predicted, 0);
  EXPECT_EQ(generation.timings.n_prompt, static_cast<int>(tokens("hello").size()));
  EXPECT_TRUE(generate("hello", greedy(3)).embedding.empty());
}

TEST_F(EmbeddingTest, DependsNeitherOnOthersNorOnKeptTexts) {
  for (const Pooling pooling : kAll) {
    start();
    const std::vector<float> expected = embed(kLong, pooling);
    start();
    const std::vector<TokenId> text = generate("hello", sampled(40, 3)).tokens;
    generate(kLong, greedy(8));  // is kept
    const RequestId decoding = submit("hello", sampled(40, 3));
    for (int i = 0; i < 3; ++i) stepper_->step();
    const RequestId other = submit_embedding("another text", Pooling::kMean);
    const RequestId id = submit_embedding(kLong, pooling);
    const RequestId reading = submit(kLong + "!", greedy(8));
    EXPECT_EQ(finish(id).embedding, expected);
    EXPECT_EQ(finish(decoding).tokens, text);
    finish(other);
    finish(reading);
  }
}

TEST_F(EmbeddingTest, GivesItsCellsBackAndForgetsNoText) {
  generate(kLong, greedy(8));
  const int n_free = executor_->cells().n_free();
  for (const Pooling pooling : kAll) {
    embed(kLong, pooling);
    embed("something else", pooling);
    EXPECT_EQ(executor_->cells().n_free(), n_free);
  }
  const Generation again = generate(kLong, greedy(8));
  EXPECT_EQ(again.timings.n_cached, static_cast<int>(tokens(kLong).size()) - 1);
}

TEST_F(EmbeddingTest, WaitsWhereCellsRunOut) {
  std::vector<std::vector<float>> expected;
  const auto text = [](int i) { return std::string(static_cast<size_t>(90 + 10 * i), 'a'); };
  const auto pooling = [](int i) { return kAll[i % 4]; };
  for (int i = 0; i < 8; ++i) expected.push_back(embed(text(i), pooling(i)));
  const std::vector<TokenId> answer = generate("hello", greedy(150)).tokens;
  start(/*min_rows=*/1, /*n_cells=*/kContext);
  const RequestId decoding = submit("hello", greedy(150));
  std::vector<RequestId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(submit_embedding(text(i), pooling(i)));
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(finish(ids[i]).embedding, expected[i]) << i;
  EXPECT_EQ(finish(decoding).tokens, answer);
  stepper_->slots().clear();
  EXPECT_EQ(executor_->cells().n_free(), kContext);
}

// Whoever drafts, or learns from answers, does not hear of it.
TEST_F(EmbeddingTest, IsNotDraftedFor) {
  class Counting final : public Drafter {
   public:
    std::unique_ptr<RequestDrafter> begin(std::span<const TokenId>) override {
      ++n_begun;
      return nullptr;
    }
    int n_begun = 0;
  };
  DrafterSet drafters;
  auto made = std::make_unique<Counting>();
  Counting& counting = *made;
  drafters.texts.push_back(std::move(made));
  OwnPlanner planner(std::move(drafters), 4);
  int n_answers = 0;
  const Speculation speculation{.planner = &planner, .on_answer = [&](auto, auto) { ++n_answers; }};
  const RequestId id = stepper_->submit(wanting(kLong, Pooling::kMean), speculation);
  EXPECT_EQ(finish(id).embedding.size(), n_embd());
  EXPECT_EQ(counting.n_begun, 0);
  EXPECT_EQ(n_answers, 0);
}

TEST_F(EmbeddingTest, TextsOfTheWholeContextAndNoLongerOnes) {
  const std::string fitting(kContext, 'a');
  ASSERT_EQ(tokens(fitting).size(), static_cast<size_t>(kContext));
  EXPECT_EQ(embed(fitting, Pooling::kLast).size(), n_embd());
  try {
    embed(fitting + "a", Pooling::kLast);
    ADD_FAILURE() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kContextFull);
  }
  EXPECT_THROW(embed("", Pooling::kMean), Error);
}

TEST_F(EmbeddingTest, AnEndBeforeItsTimeLeavesNone) {
  const int n_free = executor_->cells().n_free();
  const RequestId id = submit_embedding(kLong, Pooling::kMean);
  stepper_->step();
  stepper_->cancel(id);
  const Generation generation = finish(id);
  EXPECT_EQ(generation.stop_reason, StopReason::kCancelled);
  EXPECT_TRUE(generation.embedding.empty());
  EXPECT_EQ(executor_->cells().n_free(), n_free);
}

TEST_F(EmbeddingTest, APassThatFailsCanBeTriedAgain) {
  const std::vector<float> expected = embed(kLong, Pooling::kMean);
  const RequestId id = submit_embedding(kLong, Pooling::kMean);
  stepper_->step();
  test::fail_at_pass(1);
  EXPECT_THROW(stepper_->step(), Error);
  test::fail_at_pass(0);
  EXPECT_EQ(finish(id).embedding, expected);
}

}  // namespace
}  // namespace forerun
