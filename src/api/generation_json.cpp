#include "api/generation_json.h"

#include <cmath>
#include <string>

#include "core/ids.h"
#include "text/utf8.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity; an impossible token has a very small probability instead.
constexpr double kLowestLogprob = -9999.0;

double per_token(double ms, int n) {
  return n > 0 ? ms / n : 0;
}

Json logprob_json(const TokenLogprob& entry, const Tokenizer& tokenizer) {
  const std::string piece = tokenizer.piece(entry.token);
  Utf8Stream utf8;
  const std::string text = utf8.push(piece) + utf8.flush();
  const std::vector<uint8_t> bytes(piece.begin(), piece.end());
  return {
      {"id", to_int(entry.token)},
      {"token", text},
      {"bytes", bytes},
      {"logprob", std::isfinite(entry.logprob) ? static_cast<double>(entry.logprob) : kLowestLogprob}};
}

}  // namespace

std::vector<int32_t> token_numbers(std::span<const TokenId> tokens) {
  std::vector<int32_t> numbers;
  for (const TokenId token : tokens) numbers.push_back(to_int(token));
  return numbers;
}

Json timings_json(const Timings& timings, const SpeculationStatistics& speculation) {
  const DraftCounts drafts = speculation.total();
  return {{"cache_n", timings.n_cached},
          {"prompt_n", timings.n_prompt},
          {"prompt_ms", timings.prompt_ms},
          {"prompt_per_token_ms", per_token(timings.prompt_ms, timings.n_prompt)},
          {"prompt_per_second", timings.prompt_per_second()},
          {"predicted_n", timings.n_predicted},
          {"predicted_ms", timings.predicted_ms},
          {"predicted_per_token_ms", per_token(timings.predicted_ms, timings.n_timed())},
          {"predicted_per_second", timings.predicted_per_second()},
          {"draft_n", drafts.n_drafted},
          {"draft_n_accepted", drafts.n_accepted}};
}

Json logprobs_json(std::span<const TokenLogprobs> logprobs, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json entry = logprob_json(token.chosen, tokenizer);
    Json& top = entry["top_logprobs"] = Json::array();
    for (const TokenLogprob& other : token.top) top.push_back(logprob_json(other, tokenizer));
    list.push_back(std::move(entry));
  }
  return list;
}

Json draws_json(std::span<const TokenLogprobs> logprobs, const Tokenizer& tokenizer) {
  const auto as_probability = [&](const TokenLogprob& entry) {
    Json json = logprob_json(entry, tokenizer);
    json.erase("logprob");
    json["prob"] = std::exp(static_cast<double>(entry.logprob));
    return json;
  };
  Json list = Json::array();
  for (const TokenLogprobs& token : logprobs) {
    Json entry = as_probability(token.chosen);
    Json& top = entry["top_probs"] = Json::array();
    for (const TokenLogprob& other : token.top) top.push_back(as_probability(other));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace forerun
