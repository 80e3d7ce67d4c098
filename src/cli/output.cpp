#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "api/generation_json.h"
#include "api/statistics_json.h"
#include "core/grouped.h"
#include "text/printable.h"
#include "text/utf8.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

std::string_view in_words(StopReason reason, const Engine& engine) {
  switch (reason) {
    case StopReason::kEndOfText: return "end of text";
    case StopReason::kLimit: return "token limit";
    case StopReason::kStop: return "stop text";
    case StopReason::kContextFull:
      return engine.n_context() < engine.model().n_context_trained ? "context full (a larger one: -c)"
                                                                   : "context full";
    case StopReason::kCancelled: return "interrupted";
  }
  return "";
}

}  // namespace

Json speculation_json(const SpeculationStatistics& statistics) {
  Json object = counts_json(statistics.total());
  object["steps"] = statistics.n_steps;
  object["tokens_per_step"] = statistics.tokens_per_step();
  object["accept_rate"] = statistics.accept_rate();
  object["draft_ms"] = statistics.draft_ms;
  object["pass_ms"] = statistics.pass_ms;
  object["sample_ms"] = statistics.sample_ms;
  object["by_source"] = by_source_json(statistics);
  object["by_depth"] = by_depth_json(statistics);
  return object;
}

Json generation_json(const Generation& generation, std::span<const TokenId> prompt,
                     const Engine& engine) {
  Json object{{"text", generation.text},
              {"tokens", token_numbers(generation.tokens)},
              {"prompt_tokens", token_numbers(prompt)},
              {"stop_reason", to_string(generation.stop_reason)},
              {"seed", generation.seed}};
  if (!generation.logprobs.empty()) {
    object["logprobs"] = logprobs_json(generation.logprobs, engine.tokenizer());
  }
  object["timings"] = timings_json(generation.timings, generation.speculation);
  object["speculation"] = speculation_json(generation.speculation);
  return object;
}

std::string statistics_line(const Generation& generation, const Engine& engine) {
  const Timings& t = generation.timings;
  const std::string cached = t.n_cached > 0 ? fmt::format(" (and {} from before)", t.n_cached) : "";
  const DraftCounts drafts = generation.speculation.total();
  const std::string drafted = drafts.n_drafted > 0 ? fmt::format(" ({} drafted, {} of them right)",
                                                                 drafts.n_drafted, drafts.n_accepted)
                                                   : "";
  // Of a single token there is no speed: it comes with the prompt.
  const auto rate = [](int n, double per_second) {
    return n > 1 && per_second > 0 ? fmt::format(", {:.1f} per second", per_second) : "";
  };
  return fmt::format("prompt: {}{}{} | answer: {}{}{} | {}", counted(t.n_prompt, "token"), cached,
                     rate(t.n_prompt, t.prompt_per_second()), counted(t.n_predicted, "token"),
                     rate(t.n_predicted, t.predicted_per_second()), drafted,
                     in_words(generation.stop_reason, engine));
}

void print_warning(std::string_view message) {
  fmt::print(stderr, "forerun: warning: {}\n", printable(message));
}

void print_text(std::string_view text) {
  // Files and programs get the text itself, a terminal nothing that it would act upon.
  static const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const std::string shown = is_terminal ? printable(text) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  std::fflush(stdout);
}

void print_json(const Json& object) {
  std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace forerun
