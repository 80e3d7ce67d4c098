#include "serve/protocol/answer_json.h"

#include <chrono>
#include <random>

#include "api/generation_json.h"
#include "core/version.h"

namespace forerun {

Json answer_timings(const Timings& timings, const SpeculationStatistics& speculation) {
  Json json = timings_json(timings, speculation);
  if (speculation.total().n_drafted == 0) {
    json.erase("draft_n");
    json.erase("draft_n_accepted");
  }
  json["passes"] = speculation.n_steps + (timings.n_predicted > 0 ? 1 : 0);
  return json;
}

void add_progress(const PromptProgress& progress, const AnswerFields& fields, Json& event) {
  event["prompt_progress"] = {{"total", progress.n_prompt},
                              {"cache", progress.n_cached},
                              {"processed", progress.n_read},
                              {"time_ms", progress.ms}};
  if (!fields.times_each) return;
  event["timings"] = answer_timings({.n_cached = progress.n_cached,
                                     .n_prompt = progress.n_read - progress.n_cached,
                                     .prompt_ms = progress.ms},
                                    {});
}

void Usage::add(const Generation& generation, size_t n_prompt_tokens) {
  n_prompt += static_cast<int>(n_prompt_tokens);
  n_cached += generation.timings.n_cached;
  n_completion += generation.timings.n_predicted;
  prediction.add(generation.speculation.by_source[static_cast<size_t>(DraftSource::kPrediction)]);
}

Json Usage::json() const {
  Json usage = {{"completion_tokens", n_completion},
                {"prompt_tokens", n_prompt},
                {"total_tokens", n_prompt + n_completion},
                {"prompt_tokens_details", {{"cached_tokens", n_cached}}}};
  if (prediction.n_drafted > 0) {
    usage["completion_tokens_details"] = {
        {"accepted_prediction_tokens", prediction.n_accepted},
        {"rejected_prediction_tokens", prediction.n_drafted - prediction.n_accepted}};
  }
  return usage;
}

Json origins_json(std::span<const std::optional<DraftSource>> origins) {
  Json result = Json::array();
  for (const auto& origin : origins) result.push_back(origin ? Json(to_string(*origin)) : Json(nullptr));
  return result;
}

std::string text_with_names(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  std::string text;
  for (const TokenId token : tokens) text += tokenizer.piece(token);
  return text;
}

std::string finish_reason(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText:
    case StopReason::kStop: return "stop";
    case StopReason::kLimit:
    case StopReason::kContextFull:
    case StopReason::kCancelled: return "length";
  }
  return "stop";
}

std::string new_id(const std::string& prefix) {
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id = prefix;
  for (int i = 0; i < 32; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string system_fingerprint() {
  return std::string("b-forerun-") + kVersionText;
}

}  // namespace forerun
