// A stepper with a small model that is made here, for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/byte_model.h"
#include "engine/loaded_model.h"
#include "engine/stepper.h"
#include "support/temp_dir.h"

namespace forerun {

class StepperTest : public ::testing::Test {
 protected:
  static constexpr int kContext = 256;
  static constexpr int kSlots = 4;

  StepperTest() {
    byte_model().write(path_);
    loaded_.emplace(load_model(path_, {.name = "cpu", .n_threads = 1, .pin_threads = false}));
    start();
  }

  // A new engine that has seen nothing.
  void start(int min_rows = 1, int n_cells = kSlots * kContext) {
    stepper_.reset();
    warnings_.clear();
    executor_.emplace(loaded_->model,
                      ExecutorOptions{.kv = {.n_cells = n_cells}, .max_rows = 32, .min_rows = min_rows});
    stepper_.emplace(
        *executor_, loaded_->vocabulary,
        StepperOptions{.n_slots = kSlots,
                       .n_context = kContext,
                       .warn = [this](std::string_view warning) { warnings_.emplace_back(warning); }});
  }

  std::vector<TokenId> tokens(const std::string& text) { return loaded_->vocabulary.tokenize(text); }
  static GenerationOptions greedy(int max_tokens) {
    GenerationOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = max_tokens;
    options.ignore_eos = true;
    return options;
  }
  static GenerationOptions sampled(int max_tokens, uint64_t seed) {
    GenerationOptions options = greedy(max_tokens);
    options.sampling.temperature = 1.5f;
    options.sampling.top_k = 0;
    options.sampling.top_p = 1.0f;
    options.sampling.min_p = 0.0f;
    options.sampling.repeat_penalty = 1.1f;
    options.sampling.seed = seed;
    return options;
  }
  RequestId submit(const std::string& prompt, const GenerationOptions& options) {
    return stepper_->submit({.prompt = tokens(prompt), .options = options});
  }
  Generation generate(const std::string& prompt, const GenerationOptions& options) {
    return finish(submit(prompt, options));
  }
  Generation finish(RequestId id) {
    for (;;) {
      if (auto result = stepper_->take(id)) {
        if (auto* error = std::get_if<std::exception_ptr>(&*result)) std::rethrow_exception(*error);
        return std::get<Generation>(std::move(*result));
      }
      stepper_->step();
    }
  }

  test::TempDir folder_;
  std::filesystem::path path_ = folder_.file("model.gguf");
  std::optional<LoadedModel> loaded_;
  std::optional<Executor> executor_;
  std::vector<std::string> warnings_;
  std::optional<Stepper> stepper_;
};

}  // namespace forerun
