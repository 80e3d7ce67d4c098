// Draft models that are strange, ends in the middle, and many requests at once, with small models
// made here: the text is always the text without them.
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "engine/byte_model.h"
#include "support/failing_device.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class DraftModelsTest : public ::testing::Test {
 protected:
  // The model, with a few tokens more than byte_model() has.
  DraftModelsTest() {
    auto tokens = byte_pair_tokens();
    for (int i = 0; i < 5; ++i) tokens.push_back({"<more" + std::to_string(i) + ">", kUserDefined});
    n_vocab_ = static_cast<int>(tokens.size());
    test::GgufBuilder model = test::tiny_model({.n_vocab = n_vocab_, .seed = 3});
    gguf_set_kv(model.metadata(), make_byte_pair().get());
    set_tokens(model.metadata(), tokens);
    model.write(folder_.file("model.gguf"));
    byte_model().write(draft_);
  }

  EngineOptions engine_options(int n_parallel = 1) const {
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
  SpeculationOptions drafting(const char* method = "draft", const char* lookahead = "own") const {
    SpeculationOptions options{.method = method};
    options.options = {{"draft-model", draft_.string()}, {"lookahead", lookahead}};
    if (options.method == "auto") options.options["auto-layers"] = "none";
    return options;
  }
  Request request(size_t n_prompt, uint64_t seed) const {
    Request request;
    for (size_t i = 0; i < n_prompt; ++i) {
      request.prompt.push_back(TokenId{static_cast<int>((i * 31 + seed * 7) % 200)});
    }
    request.options.max_tokens = 30;
    request.options.ignore_eos = true;
    request.options.sampling.seed = seed;
    return request;
  }
  // The text is the one without drafts; so many tokens were drafted.
  int64_t expect_same_text(const SpeculationOptions& speculation, Request request) const {
    Engine engine(engine_options());
    const Generation plain = engine.generate(request);
    request.speculation = engine.add_speculation(speculation);
    const Generation drafted = engine.generate(request);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    return drafted.speculation.total().n_drafted;
  }
  // A number in each of these rows of the embedding, which is the head too, becomes `value`.
  void spoil(float value, int first_row, int n_rows) const {
    const auto whole = folder_.file("whole.gguf");
    byte_model().write(whole);
    test::copy_gguf(whole, draft_, [&](test::StoredTensor& tensor) {
      if (tensor.name != "token_embd.weight") return;
      auto* values = reinterpret_cast<float*>(tensor.data.data());
      const auto width = tensor.shape[0];
      for (int row = first_row; row < first_row + n_rows; ++row) values[row * width] = value;
    });
  }

  test::TempDir folder_;
  const std::filesystem::path draft_ = folder_.file("draft.gguf");
  int n_vocab_ = 0;
};

// The rows that all of them have to read before they draft are more than a pass has.
TEST_F(DraftModelsTest, ManyRequestsDraftTogether) {
  constexpr int kRequests = 40;
  Engine engine(engine_options(kRequests));
  const SpeculationId id = engine.add_speculation(drafting());
  std::vector<Request> requests;
  std::vector<Generation> plain;
  for (uint64_t i = 0; i < kRequests; ++i) {
    requests.push_back(request(12, i));
    plain.push_back(engine.generate(requests.back()));
  }
  std::vector<RequestId> ids;
  for (Request& one : requests) {
    one.speculation = id;
    ids.push_back(engine.submit(one));
  }
  while (engine.step()) {
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const Generation drafted = engine.take(ids[i]).value();
    EXPECT_EQ(drafted.tokens, plain[i].tokens);
    EXPECT_GT(drafted.speculation.total().n_drafted, 0);
  }
}

TEST_F(DraftModelsTest, ReadsTextWithTokensItDoesNotHave) {
  for (const size_t n_prompt : {5u, 50u}) {
    Request with_others = request(n_prompt, 4);
    for (const size_t at : {size_t{1}, n_prompt - 1}) {
      with_others.prompt[at] = TokenId{n_vocab_ - 1 - static_cast<int>(at) % 5};
    }
    for (const char* method : {"draft", "auto"}) expect_same_text(drafting(method), with_others);
    // And the answer has some too.
    for (int i = 1; i <= 5; ++i) {
      with_others.options.sampling.logit_bias.emplace_back(TokenId{n_vocab_ - i}, 2.0f);
    }
    EXPECT_GT(expect_same_text(drafting(), with_others), 0);
    for (const char* method : {"draft", "auto"}) expect_same_text(drafting(method), with_others);
  }
}

// A model that has nothing to say does not draft; the answer comes without.
TEST_F(DraftModelsTest, NumbersThatAreNoneAreNoDrafts) {
  spoil(kNan, 0, static_cast<int>(byte_pair_tokens().size()));
  EXPECT_EQ(expect_same_text(drafting("draft"), request(20, 1)), 0);
  expect_same_text(drafting("auto"), request(20, 1));
}

TEST_F(DraftModelsTest, InfiniteNumbersDoNoHarm) {
  for (const float value : {kInf, -kInf, kNan}) {
    spoil(value, 210, 3);
    for (const char* lookahead : {"own", "cost", "roc", "perplexity", "adaptive"}) {
      for (const char* method : {"draft", "auto"}) {
        expect_same_text(drafting(method, lookahead), request(20, 1));
      }
    }
  }
}

// What a request may choose from is its own affair: drafts that have none of it end.
TEST_F(DraftModelsTest, ABiasThatForbidsAllTheDraftHas) {
  Request only_others = request(20, 2);
  for (int token = 0; token < n_vocab_ - 5; ++token) {
    only_others.options.sampling.logit_bias.emplace_back(TokenId{token}, -kInf);
  }
  for (const char* method : {"draft", "auto"}) expect_same_text(drafting(method), only_others);
}

TEST_F(DraftModelsTest, AnEngineMayEndWhileRequestsRun) {
  for (int n_steps = 0; n_steps < 4; ++n_steps) {
    Engine engine(engine_options(2));
    Request running = request(20, 3);
    running.speculation = engine.add_speculation(drafting());
    engine.submit(running);
    engine.submit(running);
    for (int i = 0; i < n_steps; ++i) engine.step();
    engine = Engine(engine_options());
  }
}

// Of either model.
TEST_F(DraftModelsTest, PassesThatFailChangeNoText) {
  Engine engine(engine_options());
  Request wanted = request(20, 5);
  const Generation plain = engine.generate(wanted);
  wanted.speculation = engine.add_speculation(drafting());
  for (int pass = 1; pass <= 40; ++pass) {
    engine.forget_contexts();
    const RequestId id = engine.submit(wanted);
    test::fail_at_pass(pass);
    for (bool goes_on = true; goes_on;) {
      try {
        goes_on = static_cast<bool>(engine.step());
      } catch (const Error&) {
        test::fail_at_pass(0);
      }
    }
    test::fail_at_pass(0);
    const Generation drafted = engine.take(id).value();
    EXPECT_EQ(drafted.tokens, plain.tokens) << "pass " << pass;
    EXPECT_GT(drafted.speculation.total().n_drafted, 0);
  }
}

}  // namespace
}  // namespace forerun
