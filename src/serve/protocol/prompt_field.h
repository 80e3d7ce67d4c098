// Prompts as llama-server and OpenAI's completions take them: a text, tokens, both mixed, or several.
#pragma once

#include <forerun/tokenizer.h>

#include <vector>

#include "serve/protocol/json_fields.h"

namespace forerun {

struct PromptField {
  std::vector<std::vector<TokenId>> prompts;
  bool is_list = false;  // the client sent several, and wants several answers, be it one
};

struct PromptFieldOptions {
  const char* name = "prompt";  // of the field, for errors
  // Whether a prompt may be empty; it is what begins a text then, where the model has that.
  bool may_be_empty = true;
};

// Throws Error{kInvalidArgument}.
PromptField read_prompt_field(const Json& prompt, const Tokenizer& tokenizer,
                              const PromptFieldOptions& options);
inline PromptField read_prompt_field(const Json& prompt, const Tokenizer& tokenizer) {
  return read_prompt_field(prompt, tokenizer, {});
}

// Throws ContextError where the prompt leaves no room for an answer.
void check_fits(const std::vector<TokenId>& prompt, int n_context);

}  // namespace forerun
