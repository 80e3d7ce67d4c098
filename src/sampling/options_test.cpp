#include "sampling/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "core/error.h"

namespace forerun {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kVocab = 100;

using Change = std::function<void(SamplingOptions&)>;

std::string message_after(const Change& change) {
  SamplingOptions options;
  change(options);
  try {
    validate(options, kVocab);
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
           Change([](auto& o) { o.top_k = kVocab * 2; }),
           Change([](auto& o) { o.top_p = 1; }),
           Change([](auto& o) { o.top_p = 1e-9f; }),
           Change([](auto& o) { o.min_p = 0; }),
           Change([](auto& o) { o.min_p = 1; }),
           Change([](auto& o) { o.repeat_last_n = -1; }),
           Change([](auto& o) { o.frequency_penalty = -2; }),
           Change([](auto& o) {
             o.logit_bias = {{TokenId{0}, -kInf}, {TokenId{kVocab - 1}, 100}};
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
         o.logit_bias = {{TokenId{kVocab}, 1}};
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
      {"n_logprobs", [](auto& o) { o.n_logprobs = kVocab + 1; }},
  };
  for (const auto& [name, change] : cases) EXPECT_THAT(message_after(change), testing::StartsWith(name));
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
