#include "bench/spec_method.h"
#include "core/check.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

class ForerunMethod : public SpecMethod {
 public:
  ForerunMethod(Engine& engine, std::string name, SpeculationId speculation, GenerationOptions options)
      : engine_(engine),
        name_(std::move(name)),
        speculation_(speculation),
        options_(std::move(options)) {}

  const std::string& name() const override { return name_; }

  std::vector<SpecAnswer> answer(std::span<const std::vector<TokenId>> prompts) override {
    engine_.forget_contexts();  // every method reads the whole prompt
    std::vector<RequestId> requests;
    for (const std::vector<TokenId>& prompt : prompts) {
      requests.push_back(
          engine_.submit({.prompt = prompt, .options = options_, .speculation = speculation_}));
    }
    const Stopwatch watch;
    double prompt_ms = 0;
    // Prompts are read when no request waits for its first token any more.
    while (engine_.n_reading() > 0 && engine_.step()) prompt_ms = watch.ms();
    while (engine_.step()) {
    }
    const double decode_ms = watch.ms() - prompt_ms;
    const auto n = static_cast<double>(prompts.size());
    std::vector<SpecAnswer> answers;
    for (const RequestId request : requests) {
      std::optional<Generation> generation = engine_.take(request);
      CHECK(generation.has_value());
      answers.push_back({.text = std::move(generation->text),
                         .run = {.tokens = std::move(generation->tokens),
                                 .origins = std::move(generation->origins),
                                 .logprobs = std::move(generation->logprobs),
                                 .prompt_ms = prompt_ms / n,
                                 .decode_ms = decode_ms / n,
                                 .drafts = generation->speculation.total(),
                                 .speculation = generation->speculation}});
    }
    return answers;
  }

 private:
  Engine& engine_;
  std::string name_;
  SpeculationId speculation_;
  GenerationOptions options_;
};

}  // namespace

std::unique_ptr<SpecMethod> make_forerun_method(Engine& engine, const std::string& name,
                                                SpeculationId speculation,
                                                const GenerationOptions& options) {
  return std::make_unique<ForerunMethod>(engine, name, speculation, options);
}

}  // namespace forerun
