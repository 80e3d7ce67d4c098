#include "sampling/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/error.h"
#include "support/odd_floats.h"

namespace forerun {
namespace {

constexpr int kSmallVocab = 100;

using Change = std::function<void(SamplingOptions&)>;

std::string message_after(const Change& change) {
  SamplingOptions options;
  change(options);
  try {
    validate(options, kSmallVocab);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return "";
}

TEST(SamplingOptions, DefaultsAndExtremesAreValid) {
  for (const Change& change : {
           Change([](auto&) {}),
           Change([](auto& o) { o.temperature = 0; }),
           Change([](auto& o) { o.temperature = 1e-30f; }),
           Change([](auto& o) { o.top_k = 0; }),
           Change([](auto& o) { o.top_k = kSmallVocab * 2; }),
           Change([](auto& o) { o.top_p = 1; }),
           Change([](auto& o) { o.top_p = 1e-9f; }),
           Change([](auto& o) { o.min_p = 0; }),
           Change([](auto& o) { o.min_p = 1; }),
           Change([](auto& o) { o.repeat_last_n = -1; }),
           Change([](auto& o) { o.frequency_penalty = -2; }),
           Change([](auto& o) {
             o.logit_bias = {{TokenId{0}, -kInf}, {TokenId{kSmallVocab - 1}, 100}};
           }),
           Change([](auto& o) { o.n_logprobs = 0; }),
           Change([](auto& o) { o.seed = ~uint64_t{0}; }),
       }) {
    EXPECT_EQ(message_after(change), "");
  }
}

TEST(SamplingOptions, NonsenseIsNamed) {
  const std::pair<const char*, Change> cases[] = {
      {"temperature", [](auto& o) { o.temperature = -0.1f; }},
      {"temperature", [](auto& o) { o.temperature = kNan; }},
      {"temperature", [](auto& o) { o.temperature = kInf; }},
      {"top_k", [](auto& o) { o.top_k = -1; }},
      {"top_p", [](auto& o) { o.top_p = 0; }},
      {"top_p", [](auto& o) { o.top_p = 1.01f; }},
      {"top_p", [](auto& o) { o.top_p = kNan; }},
      {"min_p", [](auto& o) { o.min_p = -0.01f; }},
      {"min_p", [](auto& o) { o.min_p = 1.5f; }},
      {"min_p", [](auto& o) { o.min_p = kNan; }},
      {"repeat_penalty", [](auto& o) { o.repeat_penalty = 0; }},
      {"repeat_penalty", [](auto& o) { o.repeat_penalty = kNan; }},
      {"repeat_penalty", [](auto& o) { o.repeat_penalty = kInf; }},
      {"repeat_last_n", [](auto& o) { o.repeat_last_n = -2; }},
      {"presence_penalty", [](auto& o) { o.presence_penalty = kNan; }},
      {"frequency_penalty", [](auto& o) { o.frequency_penalty = kInf; }},
      {"logit_bias",
       [](auto& o) {
         o.logit_bias = {{TokenId{-1}, 1}};
       }},
      {"logit_bias",
       [](auto& o) {
         o.logit_bias = {{TokenId{kSmallVocab}, 1}};
       }},
      {"logit_bias",
       [](auto& o) {
         o.logit_bias = {{TokenId{1}, kNan}};
       }},
      {"logit_bias",
       [](auto& o) {
         o.logit_bias = {{TokenId{1}, kInf}};
       }},
      {"n_logprobs", [](auto& o) { o.n_logprobs = -1; }},
      {"n_logprobs", [](auto& o) { o.n_logprobs = kSmallVocab + 1; }},
  };
  for (const auto& [name, change] : cases) EXPECT_THAT(message_after(change), testing::StartsWith(name));
}

TEST(SamplingOptions, OnlyTokensNeedAVocabulary) {
  SamplingOptions options;
  options.logit_bias = {{TokenId{kSmallVocab}, 1}};
  options.n_logprobs = kSmallVocab + 1;
  EXPECT_NO_THROW(validate(options));
  EXPECT_THROW(validate(options, kSmallVocab), Error);
  for (const Change& change : {Change([](auto& o) { o.temperature = -1; }),
                               Change([](auto& o) { o.n_logprobs = -1; }), Change([](auto& o) {
                                 o.logit_bias = {{TokenId{-1}, 1}};
                               }),
                               Change([](auto& o) {
                                 o.logit_bias = {{TokenId{1}, kInf}};
                               })}) {
    options = {};
    change(options);
    EXPECT_THROW(validate(options), Error);
  }
}

TEST(GenerationOptions, AreCheckedTheSameWay) {
  GenerationOptions options;
  options.max_tokens = -1;
  options.stop = {"."};
  options.stop_tokens = {TokenId{0}, TokenId{kSmallVocab - 1}};
  EXPECT_NO_THROW(validate(options, kSmallVocab));
  options.stop_tokens.push_back(TokenId{kSmallVocab});
  EXPECT_NO_THROW(validate(options));
  EXPECT_THROW(validate(options, kSmallVocab), Error);
  const std::pair<const char*, std::function<void(GenerationOptions&)>> cases[] = {
      {"temperature", [](auto& o) { o.sampling.temperature = kNan; }},
      {"max_tokens", [](auto& o) { o.max_tokens = -2; }},
      {"a stop string",
       [](auto& o) {
         o.stop = {"a", ""};
       }},
      {"a stop token", [](auto& o) { o.stop_tokens = {TokenId{-1}}; }},
  };
  for (const auto& [name, change] : cases) {
    options = {};
    change(options);
    try {
      validate(options);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), testing::StartsWith(name));
    }
  }
}

TEST(SamplingOptions, PenaltiesAreOffByDefault) {
  SamplingOptions options;
  EXPECT_FALSE(options.has_penalties());
  options.presence_penalty = 0.5f;
  EXPECT_TRUE(options.has_penalties());
  options.repeat_last_n = 0;
  EXPECT_FALSE(options.has_penalties());
}

}  // namespace
}  // namespace forerun
