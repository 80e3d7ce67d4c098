// The public engine with a small model made here: what comes back of what a caller does.
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/byte_model.h"
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
    Request request{.prompt = engine.tokenize(prompt)};
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
  bad.on_text = [](std::string_view) { throw Oddity{3}; };
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

}  // namespace
}  // namespace forerun
