#include "serve/protocol/prompt_field.h"

#include <algorithm>

#include "core/error.h"
#include "serve/protocol/context_error.h"

namespace forerun {
namespace {

constexpr size_t kMaxPrompts = 1024;

[[noreturn]] void fail_form() {
  fail(ErrorCode::kInvalidArgument,
       "\"prompt\" must be a string, an array of tokens and strings, or an array of such prompts");
}

bool is_mixed(const Json& array) {
  return std::any_of(array.begin(), array.end(), [](const Json& part) { return part.is_number(); });
}

TokenId token_of(const Json& number, const Tokenizer& tokenizer) {
  if (!number.is_number_integer()) fail_form();
  const auto id = number.get<int64_t>();
  if (id < 0 || id >= tokenizer.n_tokens()) {
    fail(ErrorCode::kInvalidArgument, "\"prompt\" has token {}, but the vocabulary has 0 to {}", id,
         tokenizer.n_tokens() - 1);
  }
  return TokenId{static_cast<int32_t>(id)};
}

// Texts and tokens one after the other; what begins a text is added to one that begins the prompt.
std::vector<TokenId> read_mixed(const Json& array, const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens;
  bool is_first = true;
  for (const Json& part : array) {
    if (part.is_string()) {
      const auto more =
          tokenizer.tokenize(part.get<std::string>(), {.add_special = is_first, .parse_special = true});
      tokens.insert(tokens.end(), more.begin(), more.end());
    } else {
      tokens.push_back(token_of(part, tokenizer));
    }
    is_first = false;
  }
  return tokens;
}

std::vector<TokenId> read_one(const Json& prompt, const Tokenizer& tokenizer) {
  if (prompt.is_string()) return tokenizer.tokenize(prompt.get<std::string>(), {.parse_special = true});
  if (prompt.is_array()) return read_mixed(prompt, tokenizer);
  if (!prompt.is_object()) fail_form();
  if (find_field(prompt, "multimodal_data") != nullptr) {
    fail(ErrorCode::kUnsupported, "this server takes text alone: leave \"multimodal_data\" out");
  }
  const auto text = string_field(prompt, "prompt_string");
  if (!text) fail_form();
  return tokenizer.tokenize(*text, {.parse_special = true});
}

}  // namespace

PromptField read_prompt_field(const Json& prompt, const Tokenizer& tokenizer) {
  PromptField field;
  const bool is_one = !prompt.is_array() || is_mixed(prompt);
  if (is_one) {
    field.prompts.push_back(read_one(prompt, tokenizer));
  } else {
    if (prompt.size() > kMaxPrompts) {
      fail(ErrorCode::kInvalidArgument, "\"prompt\" has {} prompts, but may have {}", prompt.size(),
           kMaxPrompts);
    }
    field.is_list = prompt.size() != 1;
    for (const Json& one : prompt) field.prompts.push_back(read_one(one, tokenizer));
  }
  if (field.prompts.empty()) fail(ErrorCode::kInvalidArgument, "\"prompt\" is empty");
  for (auto& tokens : field.prompts) {
    if (!tokens.empty()) continue;
    // Models that have one begin an answer to nothing with what begins a text.
    if (!tokenizer.bos()) fail(ErrorCode::kInvalidArgument, "\"prompt\" is empty");
    tokens.push_back(*tokenizer.bos());
  }
  return field;
}

void check_fits(const std::vector<TokenId>& prompt, int n_context) {
  if (static_cast<int>(prompt.size()) >= n_context) {
    throw ContextError(static_cast<int>(prompt.size()), n_context);
  }
}

}  // namespace forerun
