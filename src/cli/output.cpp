#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "api/statistics_json.h"
#include "core/grouped.h"
#include "text/printable.h"
#include "text/utf8.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> ids(std::span<const TokenId> tokens) {
  std::vector<int32_t> result;
  for (const TokenId token : tokens) result.push_back(to_int(token));
  return result;
}

double per_token(double ms, int n) {
  return n > 0 ? ms / n : 0;
}

Json logprob_json(const TokenLogprob& entry, const Engine& engine) {
  const std::string bytes = engine.piece(entry.token);
  Utf8Stream utf8;
  const std::string text = utf8.push(bytes) + utf8.flush();
  // JSON has no infinity; an impossible token has a very small probability instead.
  constexpr double kLowest = -9999.0;
  return {{"id", to_int(entry.token)},
          {"token", text},
          {"logprob", std::isfinite(entry.logprob) ? static_cast<double>(entry.logprob) : kLowest}};
}

std::string_view in_words(StopReason reason, const Engine& engine) {
  switch (reason) {
    case StopReason::kEndOfText: return "end of text";
    case StopReason::kLimit: return "token limit";
    case StopReason::kStop: return "stop text";
    case StopReason::kContextFull:
      return engine.n_context() < engine.n_context_trained() ? "context full (a larger one: -c)"
                                                             : "context full";
    case StopReason::kCancelled: return "interrupted";
  }
  return "";
}

}  // namespace

Json timings_json(const Timings& timings) {
  return {{"cache_n", timings.n_cached},
          {"prompt_n", timings.n_prompt},
          {"prompt_ms", timings.prompt_ms},
          {"prompt_per_token_ms", per_token(timings.prompt_ms, timings.n_prompt)},
          {"prompt_per_second", timings.prompt_per_second()},
          {"predicted_n", timings.n_predicted},
          {"predicted_ms", timings.predicted_ms},
          {"predicted_per_token_ms", per_token(timings.predicted_ms, timings.n_predicted)},
          {"predicted_per_second", timings.predicted_per_second()}};
}

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
              {"tokens", ids(generation.tokens)},
              {"prompt_tokens", ids(prompt)},
              {"stop_reason", to_string(generation.stop_reason)},
              {"seed", generation.seed}};
  if (!generation.logprobs.empty()) {
    Json& list = object["logprobs"] = Json::array();
    for (const TokenLogprobs& token : generation.logprobs) {
      Json entry = logprob_json(token.chosen, engine);
      Json& top = entry["top_logprobs"] = Json::array();
      for (const TokenLogprob& candidate : token.top) top.push_back(logprob_json(candidate, engine));
      list.push_back(std::move(entry));
    }
  }
  object["timings"] = timings_json(generation.timings);
  const DraftCounts drafts = generation.speculation.total();
  object["timings"]["draft_n"] = drafts.n_drafted;
  object["timings"]["draft_n_accepted"] = drafts.n_accepted;
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
