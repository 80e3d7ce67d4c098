#include "bench/spec_bench.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "core/check.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

// A prompt's conversation with one method.
struct Dialogue {
  const BenchPrompt* prompt;
  SpecRun* run;
  std::vector<ChatMessage> messages;
};

std::vector<TokenId> next_prompt(const Engine& engine, Dialogue& dialogue, size_t turn) {
  const std::string& text = dialogue.prompt->turns[turn];
  if (!engine.has_chat_template()) {
    std::string all;
    for (const ChatMessage& message : dialogue.messages) all += message.content + "\n\n";
    dialogue.messages.push_back({.role = "user", .content = text});
    return engine.tokenize(all + text);
  }
  dialogue.messages.push_back({.role = "user", .content = text});
  return engine.chat_prompt(dialogue.messages);
}

// Answers the same turn of several dialogues at once.
void answer(Engine& engine, std::span<Dialogue> dialogues, size_t turn, const GenerationOptions& options,
            SpeculationId speculation) {
  engine.forget_contexts();  // every method reads the whole prompt
  std::vector<std::pair<RequestId, Dialogue*>> running;
  for (Dialogue& dialogue : dialogues) {
    if (turn >= dialogue.prompt->turns.size()) continue;
    running.emplace_back(engine.submit({.prompt = next_prompt(engine, dialogue, turn),
                                        .options = options,
                                        .speculation = speculation}),
                         &dialogue);
  }
  if (running.empty()) return;
  const size_t n_running = running.size();
  const Stopwatch watch;
  double prompt_ms = 0;
  // Prompts are read when no request waits for its first token any more.
  while (engine.n_reading() > 0 && engine.step()) prompt_ms = watch.ms();
  while (engine.step()) {
  }
  const double total_ms = watch.ms();
  for (auto& [id, dialogue] : running) {
    std::optional<Generation> generation = engine.take(id);
    CHECK(generation.has_value());
    SpecRun& run = *dialogue->run;
    run.tokens.insert(run.tokens.end(), generation->tokens.begin(), generation->tokens.end());
    run.origins.insert(run.origins.end(), generation->origins.begin(), generation->origins.end());
    run.prompt_ms += prompt_ms / static_cast<double>(n_running);
    run.decode_ms += (total_ms - prompt_ms) / static_cast<double>(n_running);
    run.speculation.add(generation->speculation);
    dialogue->messages.push_back({.role = "assistant", .content = generation->text});
  }
}

// 95 % of resampled sets of prompts have a ratio of sums in here.
Interval bootstrap(const std::vector<double>& above, const std::vector<double>& below) {
  constexpr int kResamples = 2000;
  std::mt19937 random(1);
  std::vector<double> ratios;
  for (int i = 0; i < kResamples; ++i) {
    double a = 0, b = 0;
    for (size_t k = 0; k < above.size(); ++k) {
      const size_t chosen = random() % above.size();
      a += above[chosen];
      b += below[chosen];
    }
    ratios.push_back(b > 0 ? a / b : 0);
  }
  std::sort(ratios.begin(), ratios.end());
  return {.low = ratios[kResamples / 40], .high = ratios[kResamples - 1 - kResamples / 40]};
}

}  // namespace

std::vector<std::string> SpecBenchResult::categories() const {
  std::vector<std::string> names;
  for (const BenchPrompt& prompt : prompts) {
    if (std::find(names.begin(), names.end(), prompt.category) == names.end()) {
      names.push_back(prompt.category);
    }
  }
  return names;
}

SpecSummary SpecBenchResult::summary(size_t method, const std::optional<std::string>& category) const {
  SpecSummary summary;
  std::vector<double> plain, own;
  double plain_total = 0, own_total = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (category && prompts[i].category != *category) continue;
    const SpecRun& reference = runs[0][i];
    const SpecRun& run = runs[method][i];
    ++summary.n_prompts;
    summary.n_identical += run.tokens == reference.tokens ? 1 : 0;
    summary.n_tokens += static_cast<int64_t>(run.tokens.size());
    summary.speculation.add(run.speculation);
    plain.push_back(reference.decode_ms);
    own.push_back(run.decode_ms);
    plain_total += reference.decode_ms + reference.prompt_ms;
    own_total += run.decode_ms + run.prompt_ms;
  }
  const double own_ms = std::accumulate(own.begin(), own.end(), 0.0);
  if (own_ms <= 0) return summary;
  summary.speedup = std::accumulate(plain.begin(), plain.end(), 0.0) / own_ms;
  summary.speedup_interval = bootstrap(plain, own);
  summary.speedup_total = plain_total / own_total;
  summary.tokens_per_second = 1e3 * static_cast<double>(summary.n_tokens) / own_ms;
  summary.draft_share = summary.speculation.draft_ms / own_ms;
  summary.pass_share = summary.speculation.pass_ms / own_ms;
  summary.sample_share = summary.speculation.sample_ms / own_ms;
  return summary;
}

SpecBenchResult run_spec_bench(const SpecBenchOptions& options,
                               const std::function<void(const SpecProgress&)>& progress) {
  SpecBenchResult result;
  result.methods.push_back("none");
  for (const std::string& method : options.methods) {
    if (method != "none") result.methods.push_back(method);
  }
  result.prompts = options.prompts;
  result.runs.assign(result.methods.size(), std::vector<SpecRun>(options.prompts.size()));

  EngineOptions engine_options = options.engine;
  engine_options.n_parallel = options.batch;
  engine_options.speculation.method = "none";
  Engine engine(engine_options);
  const Engine::Hardware hardware = engine.hardware();
  result.device = hardware.device;
  result.device_description = hardware.description;
  result.kernels = hardware.kernels;
  result.n_threads = hardware.n_threads;
  std::vector<SpeculationId> speculations;  // what each method learns stays with it
  for (const std::string& method : result.methods) {
    SpeculationOptions speculation = options.engine.speculation;
    speculation.method = method;
    if (!options.live_folder.empty()) speculation.live_datastore = options.live_folder / method;
    speculations.push_back(engine.add_speculation(speculation));
  }

  const auto batch = static_cast<size_t>(options.batch);
  const Stopwatch watch;
  for (size_t first = 0; first < options.prompts.size(); first += batch) {
    const size_t n = std::min(batch, options.prompts.size() - first);
    for (size_t m = 0; m < result.methods.size(); ++m) {
      // Each batch begins with another method, so that none is always first.
      const size_t method = (m + first / batch) % result.methods.size();
      std::vector<Dialogue> dialogues;
      size_t n_turns = 0;
      for (size_t i = first; i < first + n; ++i) {
        dialogues.push_back(
            {.prompt = &options.prompts[i], .run = &result.runs[method][i], .messages = {}});
        n_turns = std::max(n_turns, options.prompts[i].turns.size());
      }
      for (size_t turn = 0; turn < n_turns; ++turn) {
        answer(engine, dialogues, turn, options.generation, speculations[method]);
      }
    }
    if (progress) {
      const double done = static_cast<double>(first + n);
      const double all = static_cast<double>(options.prompts.size());
      progress({.n_done = static_cast<int>(first + n),
                .n_all = static_cast<int>(options.prompts.size()),
                .seconds_left = watch.seconds() * (all - done) / done});
    }
  }
  const auto longest = [&](size_t i) {
    return std::count_if(result.runs.back()[i].origins.begin(), result.runs.back()[i].origins.end(),
                         [](const auto& origin) { return origin.has_value(); });
  };
  for (size_t i = 1; i < options.prompts.size(); ++i) {
    if (longest(i) > longest(result.sample_prompt)) result.sample_prompt = i;
  }
  for (const TokenId token : result.runs.back()[result.sample_prompt].tokens) {
    result.pieces.push_back(engine.piece(token));
  }
  return result;
}

}  // namespace forerun
