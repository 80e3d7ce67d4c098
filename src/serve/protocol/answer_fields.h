// What requests of all protocols say about the answer they want, under llama-server's names and
// OpenAI's.
#pragma once

#include <forerun/generation_options.h>
#include <forerun/tokenizer.h>

#include <optional>
#include <string>
#include <vector>

#include "serve/protocol/json_fields.h"

namespace forerun {

// What a request does not say.
struct AnswerDefaults {
  GenerationOptions generation = {};
};

struct AnswerFields {
  GenerationOptions generation;
  int n_choices = 1;
  bool streams = false;
  bool includes_usage = false;  // of a stream, as its last event
  bool returns_tokens = false;
  bool returns_texts = false;     // of each token, beside its origin
  bool times_each = false;        // timings with every event of a stream
  bool returns_progress = false;  // of reading the prompt
  bool is_verbose = false;
  bool caches_prompt = true;
  int priority = 0;
  // How to speculate: nothing said; not at all; by a method's name; with so many tokens at most.
  struct Speculative {
    std::optional<std::string> method = std::nullopt;
    int max_draft = -1;
  };
  Speculative speculative;
  std::vector<TokenId> prediction;           // what the answer is expected to be
  std::vector<std::string> response_fields;  // empty: all
};

// Throws Error{kInvalidArgument} that names the field, and {kUnsupported} for samplers that forerun has
// not.
AnswerFields read_answer_fields(const Json& request, const AnswerDefaults& defaults,
                                const Tokenizer& tokenizer);

// As /completion and /slots show them.
Json settings_json(const AnswerFields& fields, uint64_t seed, const Tokenizer& tokenizer);

}  // namespace forerun
