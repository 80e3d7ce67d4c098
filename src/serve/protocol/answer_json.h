// Parts of answers that several protocols have.
#pragma once

#include <forerun/generation.h>
#include <forerun/request.h>
#include <forerun/tokenizer.h>

#include <span>
#include <string>

#include "serve/protocol/answer_fields.h"
#include "serve/protocol/json_fields.h"

namespace forerun {

// With llama-server's names, and `passes`: how often the model was run for the answer.
Json answer_timings(const Timings& timings, const SpeculationStatistics& speculation);
inline Json answer_timings(const Generation& generation) {
  return answer_timings(generation.timings, generation.speculation);
}
// How far the prompt is read, in an event of a stream.
void add_progress(const PromptProgress& progress, const AnswerFields& fields, Json& event);

// OpenAI's: prompt_tokens, completion_tokens, ...
struct Usage {
  int n_prompt = 0;
  int n_cached = 0;
  int n_completion = 0;
  DraftCounts prediction;  // tokens that clients expected

  void add(const Generation& generation, size_t n_prompt_tokens);
  Json json() const;
};

// Where each token came from: "input", "datastore", ..., or null: it was not drafted.
Json origins_json(std::span<const std::optional<DraftSource>> origins);

// Of tokens, control tokens by their names.
std::string text_with_names(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

// "stop" or "length".
std::string finish_reason(StopReason reason);

// Unlike any other: "chatcmpl-" and letters.
std::string new_id(const std::string& prefix);
int64_t now_seconds();
// What answers are made by; begins with "b", as clients of llama-server expect.
std::string system_fingerprint();

}  // namespace forerun
