#include <forerun/benchmark.h>

#include "bench/spec/method.h"
#include "core/check.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

class ForerunMethod : public SpecMethod {
 public:
  ForerunMethod(Engine& engine, ForerunMethodOptions options)
      : engine_(engine), options_(std::move(options)) {}

  const std::string& name() const override { return options_.name; }

  std::vector<SpecAnswer> answer(std::span<const std::vector<TokenId>> prompts) override {
    std::vector<Request> wanted;
    std::vector<std::shared_ptr<BenchmarkRecord>> records;
    for (const std::vector<TokenId>& prompt : prompts) {
      const auto& record = records.emplace_back(std::make_shared<BenchmarkRecord>());
      wanted.push_back({.prompt = prompt,
                        .options = options_.generation,
                        .speculation = options_.speculation,
                        .benchmark = record});
      if (!options_.tells_answers) continue;
      record->known_answer = engine_.generate({.prompt = prompt, .options = options_.generation}).tokens;
    }
    engine_.forget_contexts();  // every method reads the whole prompt
    std::vector<RequestId> requests;
    for (Request& request : wanted) requests.push_back(engine_.submit(std::move(request)));
    // A pass may read prompts beside texts that grow already: each takes its share.
    const double read_before = engine_.statistics().prompt_seconds;
    const Stopwatch watch;
    while (engine_.step()) {
    }
    const double prompt_ms = 1e3 * (engine_.statistics().prompt_seconds - read_before);
    const double decode_ms = watch.ms() - prompt_ms;
    std::vector<SpecAnswer> answers;
    for (size_t i = 0; i < requests.size(); ++i) {
      std::optional<Generation> generation = engine_.take(requests[i]);
      CHECK(generation.has_value());
      const SpeculationStatistics& speculation = generation->speculation;
      // Its own rows, drafts and tokens, whoever it waited for.
      const double own_ms = speculation.pass_ms + speculation.draft_ms + speculation.sample_ms;
      answers.push_back({.text = std::move(generation->text),
                         .run = {.tokens = std::move(generation->tokens),
                                 .origins = std::move(generation->origins),
                                 .logprobs = std::move(generation->logprobs),
                                 .decode_ms = own_ms,
                                 .drafts = speculation.total(),
                                 .speculation = generation->speculation,
                                 .steps = std::move(records[i]->steps)}});
    }
    share_time(answers, {.prompt_ms = prompt_ms, .decode_ms = decode_ms});
    return answers;
  }

 private:
  Engine& engine_;
  ForerunMethodOptions options_;
};

}  // namespace

std::unique_ptr<SpecMethod> make_forerun_method(Engine& engine, ForerunMethodOptions options) {
  return std::make_unique<ForerunMethod>(engine, std::move(options));
}

}  // namespace forerun
