// Text of a model in several parts is the text of the model in one, and so it is with drafts, those of
// its own layers among them.

#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "api/speculator.h"
#include "cost/known_costs.h"
#include "engine/loaded_model.h"
#include "engine/stepper.h"
#include "support/engine.h"
#include "support/model_files.h"
#include "support/spread_model.h"

namespace forerun {
namespace {

using namespace test;

constexpr int kSlots = 2;
constexpr int kSpreadContext = 256;

const std::vector<std::string> kSpreadPrompts = {
    "Repeat this sentence three times: the cat sat on the mat and looked at the moon.",
    "List the months of the year, then list them again.",
};

class TextEngine {
 public:
  // `placement`: nullptr: the model is one part.
  TextEngine(const std::string& name, const Placement* placement)
      : loaded_(forerun::load_model(
            model_file(name), DeviceOptions{.name = "cpu", .n_threads = 2, .pin_threads = false})) {
    if (placement != nullptr) loaded_.model = load_spread(model_file(name), *placement, 2);
    executor_ = std::make_unique<Executor>(
        loaded_.model, ExecutorOptions{.kv = {.n_cells = kSlots * kSpreadContext}, .max_rows = 64});
    costs_ = std::make_unique<PassCosts>(known_costs(*executor_));
    stepper_ = std::make_unique<Stepper>(*executor_, loaded_.vocabulary,
                                         StepperOptions{.n_slots = kSlots, .n_context = kSpreadContext},
                                         costs_.get());
  }

  // Answers to all prompts at once, greedy and sampled.
  std::vector<Generation> answers(const SpeculationOptions& options, int n_tokens) {
    Speculator speculator(options, {.vocabulary = loaded_.vocabulary,
                                    .executor = *executor_,
                                    .costs = *costs_,
                                    .warn = {},
                                    .draft_model = {}});
    std::vector<RequestId> ids;
    for (const std::string& prompt : kSpreadPrompts) {
      for (const float temperature : {0.0f, 0.8f}) {
        Request request{.prompt = loaded_.vocabulary.tokenize(prompt)};
        request.options.max_tokens = n_tokens;
        request.options.ignore_eos = true;
        request.options.sampling.temperature = temperature;
        request.options.sampling.seed = 7;
        ids.push_back(stepper_->submit(std::move(request), speculator.speculation()));
      }
    }
    std::vector<Generation> found;
    for (const RequestId id : ids) {
      auto result = stepper_->take(id);
      while (!result) {
        stepper_->step();
        result = stepper_->take(id);
      }
      if (const auto* failure = std::get_if<std::exception_ptr>(&*result))
        std::rethrow_exception(*failure);
      found.push_back(std::get<Generation>(std::move(*result)));
    }
    return found;
  }

 private:
  LoadedModel loaded_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<PassCosts> costs_;
  std::unique_ptr<Stepper> stepper_;
};

SpeculationOptions method(const std::string& name, std::map<std::string, std::string> options = {}) {
  SpeculationOptions chosen;
  chosen.method = name;
  chosen.options = std::move(options);
  return chosen;
}

int64_t n_accepted_of_layers(const std::vector<Generation>& generations) {
  int64_t n = 0;
  for (const Generation& generation : generations)
    n += generation.speculation.by_source[static_cast<size_t>(DraftSource::kLayers)].n_accepted;
  return n;
}

void expect_same_text(const std::string& name, const Placement& placement, int n_tokens) {
  SCOPED_TRACE(name + ": " + placement.where());
  TextEngine whole(name, nullptr), spread(name, &placement);
  const auto expected = whole.answers(method("none"), n_tokens);
  const auto compare = [&](const SpeculationOptions& options) {
    const auto found = spread.answers(options, n_tokens);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(found[i].tokens, expected[i].tokens) << options.method << ", request " << i;
    return found;
  };
  for (const char* plain : {"none", "pld", "jacobi", "auto"}) compare(method(plain));
  for (const char* layers : {"uniform", "swift", "clasp", "del", "knapspec"}) compare(method(layers));
  // With no block left out drafts are the model's own text.
  const auto certain = compare(method("uniform", {{"uniform-skip", "0"}, {"uniform-threshold", "0"}}));
  EXPECT_GT(n_accepted_of_layers(certain), n_tokens);
  for (const Generation& generation : certain) EXPECT_EQ(generation.speculation.accept_rate(), 1.0);
}

TEST(SpreadText, IsTheSameWithEveryDraft) {
  expect_same_text("smollm2", placement_on_cpu({9, 10}, 12), 24);
}

TEST(SpreadText, IsTheSameWhereExpertsAreApart) {
  const int n_layers = test::load_model(model_file("tiny-qwen3moe"))->config().n_layers;
  expect_same_text("tiny-qwen3moe", placement_on_cpu({n_layers + 1}, 0, /*cpu_experts=*/true), 32);
}

}  // namespace
}  // namespace forerun
