// libllama's own greedy answers, forced token by token through forerun: our best token
// is libllama's everywhere, except where its two best logits are so close that rounding
// decides.
//
// By hand, on a file of prompts (JSON lines with `turns`, or plain lines):
//
//   FORERUN_PROMPTS=prompts.jsonl FORERUN_MODEL=smollm2 FORERUN_N_PREDICT=64
//   FORERUN_THREADS=2 forced_decoding_test

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/engine.h"
#include "support/libllama.h"
#include "support/model_files.h"

namespace forerun {
namespace {

using namespace test;

// Logits lie between -20 and 30 or so, and both engines' are within some hundredths of
// the largest from exact arithmetic (logits_test.cpp): where libllama's two best are this
// close, rounding decides. That is rare.
constexpr float kNearTie = 1.0f;
constexpr double kMaxShare = 0.06;
constexpr int kContext = 4096;

std::string environment(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

std::vector<std::string> read_prompts(const std::filesystem::path& path) {
  std::vector<std::string> prompts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    prompts.push_back(path.extension() == ".jsonl"
                          ? nlohmann::json::parse(line).at("turns").at(0).get<std::string>()
                          : line);
  }
  return prompts;
}

struct Answer {
  std::vector<TokenId> prompt;
  std::vector<TokenId> tokens;
  std::vector<float> margins;  // of the best over the second best logit
};

Answer greedy_answer(LibLlama& reference, const std::string& prompt, int n_predict) {
  Answer answer{
      .prompt = reference.tokenize(reference.chat_prompt(prompt), true), .tokens = {}, .margins = {}};
  reference.forget();
  std::vector<float> logits = reference.read(answer.prompt, 1);
  while (static_cast<int>(answer.tokens.size()) < n_predict) {
    const TokenId best = argmax(logits).value();
    float& logit = logits[static_cast<size_t>(best)];
    const float top = std::exchange(logit, -INFINITY);
    answer.margins.push_back(top - largest(logits));
    answer.tokens.push_back(best);
    if (reference.is_end(answer.tokens.back())) break;
    logits = reference.read(std::span(answer.tokens).last(1), 1);
  }
  return answer;
}

// Reads tokens behind the committed text, commits them, returns the best next token.
TokenId read_next(Executor& executor, SequenceId sequence, std::span<const TokenId> tokens) {
  std::span<const float> logits;
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min<size_t>(tokens.size(), executor.max_rows()));
    tokens = tokens.subspan(part.size());
    logits = executor.read(sequence, part).value().all();
  }
  return argmax(logits).value();
}

struct Mismatch {
  size_t at;
  float margin;
};

std::vector<Mismatch> force(Executor& executor, const Answer& answer) {
  std::vector<Mismatch> mismatches;
  const SequenceId sequence = executor.cells().create();
  TokenId next = read_next(executor, sequence, answer.prompt);
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    if (next != answer.tokens[i]) mismatches.push_back({.at = i, .margin = answer.margins[i]});
    if (i + 1 < answer.tokens.size()) {
      next = read_next(executor, sequence, std::span(answer.tokens).subspan(i, 1));
    }
  }
  executor.cells().remove(sequence);
  return mismatches;
}

void expect_same_answers(const std::string& model_name, const std::vector<std::string>& prompts,
                         int n_predict, int n_threads) {
  const auto path = model_file(model_name);
  const auto executor = make_executor(load_model(path, n_threads), KvType::kF16, kContext, 512);
  LibLlama reference(path, {.n_ctx = kContext, .n_threads = n_threads});
  size_t n_tokens = 0;
  size_t n_mismatches = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Answer answer = greedy_answer(reference, prompts[i], n_predict);
    n_tokens += answer.tokens.size();
    for (const Mismatch& mismatch : force(*executor, answer)) {
      ++n_mismatches;
      EXPECT_LE(mismatch.margin, kNearTie)
          << model_name << ", prompt " << i << ", token " << mismatch.at;
      std::printf("prompt %zu, token %zu: another token, libllama's margin %.4f\n", i, mismatch.at,
                  static_cast<double>(mismatch.margin));
    }
  }
  EXPECT_LE(static_cast<double>(n_mismatches), kMaxShare * static_cast<double>(n_tokens)) << model_name;
  std::printf("%s: %zu prompts, %zu tokens, %zu other tokens\n", model_name.c_str(), prompts.size(),
              n_tokens, n_mismatches);
}

TEST(ForcedDecoding, OurBestTokenIsLibllamas) {
  const std::string file = environment("FORERUN_PROMPTS", "");
  if (!file.empty()) {
    const int n_predict = std::stoi(environment("FORERUN_N_PREDICT", "64"));
    expect_same_answers(environment("FORERUN_MODEL", "smollm2"), read_prompts(file), n_predict,
                        std::stoi(environment("FORERUN_THREADS", "1")));
    return;
  }
  const auto prompts = read_prompts(std::filesystem::path(FORERUN_TEST_DATA) / "prompts.txt");
  ASSERT_GE(prompts.size(), 10u);
  expect_same_answers("smollm2", prompts, 24, 1);
  expect_same_answers("gemma3-270m", prompts, 16, 1);
}

}  // namespace
}  // namespace forerun
