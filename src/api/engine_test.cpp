// The public engine with a small model made here: what comes back of what a caller does.
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/byte_model.h"
#include "support/failing_device.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

// Nothing that forerun knows.
struct Oddity {
  int number;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() { byte_model().write(folder_.file("model.gguf")); }

  EngineOptions options(int n_parallel = 1) const {
    EngineOptions options;
    options.model = folder_.file("model.gguf").string();
    options.device = "cpu";
    options.n_threads = 1;
    options.pin_threads = false;
    options.n_context = 96;
    options.n_parallel = n_parallel;
    options.speculation.method = "none";
    return options;
  }
  static Request asking(const Engine& engine, const std::string& prompt) {
    Request request{.prompt = engine.tokenizer().tokenize(prompt)};
    request.options.sampling.temperature = 0;
    request.options.max_tokens = 10;
    request.options.ignore_eos = true;
    return request;
  }
  // Whoever fails leaves an engine that answers the next request as if nothing had been.
  static void expect_it_answers(Engine& engine) {
    EXPECT_EQ(engine.n_reading(), 0);
    engine.forget_contexts();  // which no request may use
    EXPECT_EQ(engine.generate(asking(engine, "Hello")).tokens.size(), 10u);
    EXPECT_FALSE(engine.step()) << "nothing is left to do";
  }

  test::TempDir folder_;
};

TEST_F(EngineTest, WhatARequestsFunctionThrowsComesBackFromTakingIt) {
  Engine engine(options(2));
  const std::vector<TokenId> expected = engine.generate(asking(engine, "Hello")).tokens;
  Request bad = asking(engine, "Hi");
  bad.on_chunk = [](const Chunk&) { throw Oddity{3}; };
  const RequestId failing = engine.submit(bad);
  const RequestId other = engine.submit(asking(engine, "Hello"));
  while (engine.step()) {
  }
  EXPECT_EQ(engine.take(other)->tokens, expected);
  try {
    engine.take(failing);
    ADD_FAILURE() << "it did not fail";
  } catch (const Oddity& oddity) {
    EXPECT_EQ(oddity.number, 3);
  }
  EXPECT_THROW(engine.generate(bad), Oddity);
  expect_it_answers(engine);
}

TEST_F(EngineTest, WarningsAreNoRequestsBusiness) {
  EngineOptions drafting = options();
  int n_warnings = 0;
  drafting.warn = [&](std::string_view) {
    ++n_warnings;
    throw Oddity{1};
  };
  // A datastore that cannot be written, because a file is in its place.
  drafting.speculation.method = "sssd";
  drafting.speculation.tree = "own";
  drafting.speculation.live_datastore = folder_.file("model.gguf") / "store";
  Engine engine(drafting);
  EXPECT_GT(n_warnings, 0);
  EXPECT_EQ(engine.generate(asking(engine, "Hello")).tokens.size(), 10u);
}

// As in a conversation that goes on with the next message.
TEST_F(EngineTest, ARequestWhosePassFailsIsOver) {
  Engine engine(options());
  for (const int pass : {1, 2, 6}) {
    std::string text;
    Request request = asking(engine, "Hi");
    request.on_chunk = [&](const Chunk& chunk) { text += chunk.text; };
    test::fail_at_pass(pass);
    EXPECT_THROW(engine.generate(request), Error);
    test::fail_at_pass(0);
    const std::string before = text;
    expect_it_answers(engine);
    EXPECT_EQ(text, before) << "it is not answered any more";
  }
}

TEST_F(EngineTest, ARequestWhoseProgressThrowsIsOver) {
  EngineOptions watched = options();
  double from = 2;
  watched.progress = [&](std::string_view what, double share) {
    if (what == "reading the prompt" && share >= from) throw Oddity{2};
  };
  Engine engine(watched);
  for (const double share : {0.0, 1.0}) {
    for (const bool has_text : {false, true}) {
      Request request = asking(engine, "Hi");
      if (has_text) request.on_chunk = [](const Chunk&) {};
      from = share;
      EXPECT_THROW(engine.generate(request), Oddity);
      from = 2;
      expect_it_answers(engine);
    }
  }
  watched.progress = [](std::string_view, double) { throw Oddity{2}; };
  EXPECT_THROW(Engine{watched}, Oddity);
}

TEST_F(EngineTest, TheFileSaysHowVectorsOfTextsAreMade) {
  EXPECT_EQ(Engine(options()).model().pooling, std::nullopt);
  byte_model().set("llama.pooling_type", 1u).write(folder_.file("model.gguf"));
  Engine engine(options());
  EXPECT_EQ(engine.model().pooling, Pooling::kMean);
  Request request = asking(engine, "Hello");
  request.embedding = engine.model().pooling;
  EXPECT_EQ(engine.generate(request).embedding.size(), static_cast<size_t>(engine.model().n_embd));
  expect_it_answers(engine);
  byte_model().set("llama.pooling_type", 4u).write(folder_.file("model.gguf"));
  EXPECT_EQ(Engine(options()).model().pooling, std::nullopt) << "to rank texts";
}

// Drafts by the model itself take passes too.
TEST_F(EngineTest, PassesThatFailChangeNoText) {
  for (const char* method : {"none", "uniform"}) {
    EngineOptions drafting = options(2);
    drafting.speculation = {.method = method, .tree = "own"};
    Engine engine(drafting);
    const std::vector<TokenId> expected = engine.generate(asking(engine, "Hello")).tokens;
    for (int pass = 1; pass <= 30; ++pass) {
      engine.forget_contexts();
      const RequestId one = engine.submit(asking(engine, "Hello"));
      const RequestId other = engine.submit(asking(engine, "Hello"));
      test::fail_at_pass(pass);
      for (bool goes_on = true; goes_on;) {
        try {
          goes_on = static_cast<bool>(engine.step());
        } catch (const Error&) {
          test::fail_at_pass(0);
        }
      }
      test::fail_at_pass(0);
      EXPECT_EQ(engine.take(one)->tokens, expected) << method << ", pass " << pass;
      EXPECT_EQ(engine.take(other)->tokens, expected) << method << ", pass " << pass;
    }
  }
}

}  // namespace
}  // namespace forerun
