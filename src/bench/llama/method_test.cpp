#include "bench/llama/method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "bench/llama/time_span.h"
#include "core/error.h"

namespace forerun {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kHelp = R"(----- speculative params -----

--spec-type none,draft-simple,ngram-simple,ngram-mod
                                        comma-separated list of types such as ngram-other (default:
                                        none)
--spec-ngram-mod-n-min N                minimum number
)";

Json good_answer() {
  return {{"content", "Hello"},
          {"tokens", {5, 6, 7, 2}},
          {"stop_type", "eos"},
          {"timings", {{"prompt_ms", 12.5}, {"predicted_n", 4}, {"predicted_ms", 20.0}}}};
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(LlamaMethod, ModesAreThoseOfTheHelp) {
  EXPECT_THAT(modes_in_help(kHelp), ElementsAre("plain", "ngram-simple", "ngram-mod"));
  EXPECT_THAT(modes_in_help("--spec-type [none|ngram-cache|eagle]\n"),
              ElementsAre("plain", "ngram-cache"));
  EXPECT_THAT(modes_in_help("--spec-type none|ngram-cache"), ElementsAre("plain", "ngram-cache"));
  EXPECT_THAT(modes_in_help("--model FILE\n"), ElementsAre("plain"));
  EXPECT_THAT(modes_in_help(""), ElementsAre("plain"));
}

TEST(LlamaMethod, ArgumentsFollowOurs) {
  EXPECT_THAT(mode_arguments("plain"), IsEmpty());
  EXPECT_THAT(mode_arguments("ngram-mod"), ElementsAre("--spec-type", "ngram-mod"));
  LlamaMethodOptions options{.program = "llama-server",
                             .model = "m.gguf",
                             .device = "cpu",
                             .n_threads = 3,
                             .n_context = 1000,
                             .n_parallel = 4,
                             .kv_type = "q8_0",
                             .generation = {}};
  const auto value_of = [&](const std::string& flag) {
    const std::vector<std::string> arguments = llama_arguments(options, "ngram-simple");
    const auto found = std::find(arguments.begin(), arguments.end(), flag);
    return found == arguments.end() ? "" : *(found + 1);
  };
  EXPECT_EQ(value_of("--model"), "m.gguf");
  EXPECT_EQ(value_of("--threads"), "3");
  EXPECT_EQ(value_of("--ctx-size"), "4000");  // of all requests together
  EXPECT_EQ(value_of("--parallel"), "4");
  EXPECT_EQ(value_of("--cache-type-k"), "q8_0");
  EXPECT_EQ(value_of("--cache-type-v"), "q8_0");
  EXPECT_EQ(value_of("--device"), "none");
  EXPECT_EQ(value_of("--n-gpu-layers"), "0");
  EXPECT_EQ(value_of("--spec-ngram-simple-size-n"), "3");
  options.device = "cuda:1";
  EXPECT_EQ(value_of("--device"), "CUDA1");
  EXPECT_EQ(value_of("--n-gpu-layers"), "999");
}

TEST(LlamaMethod, RequestsSayWhatOursDo) {
  GenerationOptions options;
  options.max_tokens = 7;
  options.stop = {"\n"};
  options.sampling.temperature = 0.5f;
  options.sampling.seed = (uint64_t{1} << 32) + 4;
  options.sampling.logit_bias = {{TokenId{9}, -std::numeric_limits<float>::infinity()},
                                 {TokenId{8}, 1.5f}};
  const Json request = completion_request(options);
  EXPECT_EQ(request.at("n_predict"), 7);
  EXPECT_EQ(request.at("cache_prompt"), false);
  EXPECT_EQ(request.at("return_tokens"), true);
  EXPECT_EQ(request.at("stop"), Json({"\n"}));
  EXPECT_EQ(request.at("temperature"), 0.5);
  EXPECT_LT(request.at("seed").get<uint64_t>(), std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(request.at("logit_bias").dump(), "[[9,false],[8,1.5]]");
  options.stop_tokens = {TokenId{3}};
  EXPECT_THAT(message_of([&] { completion_request(options); }), HasSubstr("--stop-token"));
}

TEST(LlamaMethod, ReadsAnAnswer) {
  Json answer = good_answer();
  const SpecAnswer plain = completion_answer(answer);
  EXPECT_EQ(plain.text, "Hello");
  EXPECT_THAT(plain.run.tokens, ElementsAre(TokenId{5}, TokenId{6}, TokenId{7}));  // less the end
  EXPECT_EQ(plain.run.prompt_ms, 12.5);
  EXPECT_EQ(plain.run.decode_ms, 20);
  EXPECT_EQ(plain.run.speculation.tokens_per_step(), 1);
  EXPECT_EQ(plain.run.drafts.n_drafted, 0);

  answer["stop_type"] = "limit";
  answer["timings"]["draft_n"] = 8;
  answer["timings"]["draft_n_accepted"] = 2;
  const SpecAnswer drafted = completion_answer(answer);
  EXPECT_EQ(drafted.run.tokens.size(), 4u);
  EXPECT_EQ(drafted.run.drafts.n_drafted, 8);
  EXPECT_EQ(drafted.run.drafts.n_accepted, 2);
  EXPECT_EQ(drafted.run.speculation.tokens_per_step(), 3);  // 3 tokens after the first, in one pass
}

TEST(LlamaMethod, NamesTheFieldThatIsWrong) {
  for (const char* path :
       {"/content", "/tokens", "/timings", "/timings/prompt_ms", "/timings/predicted_ms"}) {
    const Json::json_pointer pointer(path);
    for (const Json& bad : {Json(), Json("x1"), Json({"a"}), Json(true)}) {
      Json answer = good_answer();
      if (answer[pointer].type() == bad.type() && !bad.is_array()) continue;
      answer[pointer] = bad;
      EXPECT_THAT(message_of([&] { completion_answer(answer); }),
                  HasSubstr("no usable field '" + pointer.back() + "'"))
          << answer;
    }
    Json answer = good_answer();
    answer.at(pointer.parent_pointer()).erase(pointer.back());
    EXPECT_THAT(message_of([&] { completion_answer(answer); }), HasSubstr("'" + pointer.back() + "'"));
  }
}

TEST(TimeSpan, WhatIsCoveredTwiceCountsOnce) {
  EXPECT_DOUBLE_EQ(covered({}), 0);
  EXPECT_DOUBLE_EQ(covered({{5, 7}, {0, 3}, {1, 4}, {2, 3}}), 4 + 2);
  EXPECT_DOUBLE_EQ(covered({{-3, -1}}), 2);
}

}  // namespace
}  // namespace forerun
