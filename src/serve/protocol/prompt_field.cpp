#include "serve/protocol/prompt_field.h"

#include <algorithm>

#include "core/error.h"
#include "serve/protocol/context_error.h"

namespace forerun {
namespace {

constexpr size_t kMaxPrompts = 2048;

bool is_mixed(const Json& array) {
  return std::any_of(array.begin(), array.end(), [](const Json& part) { return part.is_number(); });
}

class PromptReader {
 public:
  PromptReader(const Tokenizer& tokenizer, const PromptFieldOptions& options)
      : tokenizer_(tokenizer), options_(options) {}

  PromptField read(const Json& prompt) const {
    PromptField field;
    const bool is_one = !prompt.is_array() || is_mixed(prompt);
    if (is_one) {
      field.prompts.push_back(read_one(prompt));
    } else {
      if (prompt.size() > kMaxPrompts) {
        fail(ErrorCode::kInvalidArgument, "\"{}\" has {} prompts, but may have {}", options_.name,
             prompt.size(), kMaxPrompts);
      }
      field.is_list = prompt.size() != 1;
      for (const Json& one : prompt) field.prompts.push_back(read_one(one));
    }
    if (field.prompts.empty()) fail_empty();
    for (auto& tokens : field.prompts) {
      if (!tokens.empty()) continue;
      // Models that have one begin an answer to nothing with what begins a text.
      if (!options_.may_be_empty || !tokenizer_.bos()) fail_empty();
      tokens.push_back(*tokenizer_.bos());
    }
    return field;
  }

 private:
  [[noreturn]] void fail_form() const {
    fail(ErrorCode::kInvalidArgument,
         "\"{}\" must be a string, an array of tokens and strings, or an array of such prompts",
         options_.name);
  }
  [[noreturn]] void fail_empty() const {
    fail(ErrorCode::kInvalidArgument, "\"{}\" is empty", options_.name);
  }

  TokenId token_of(const Json& number) const {
    if (!number.is_number_integer()) fail_form();
    const auto id = number.get<int64_t>();
    if (id < 0 || id >= tokenizer_.n_tokens()) {
      fail(ErrorCode::kInvalidArgument, "\"{}\" has token {}, but the vocabulary has 0 to {}",
           options_.name, id, tokenizer_.n_tokens() - 1);
    }
    return TokenId{static_cast<int32_t>(id)};
  }

  // Texts and tokens one after the other; what begins a text is added to one that begins the prompt.
  std::vector<TokenId> read_mixed(const Json& array) const {
    std::vector<TokenId> tokens;
    bool is_first = true;
    for (const Json& part : array) {
      if (part.is_string()) {
        const auto more = tokenizer_.tokenize(part.get<std::string>(),
                                              {.add_special = is_first, .parse_special = true});
        tokens.insert(tokens.end(), more.begin(), more.end());
      } else {
        tokens.push_back(token_of(part));
      }
      is_first = false;
    }
    return tokens;
  }

  std::vector<TokenId> read_one(const Json& prompt) const {
    if (prompt.is_string())
      return tokenizer_.tokenize(prompt.get<std::string>(), {.parse_special = true});
    if (prompt.is_array()) return read_mixed(prompt);
    if (!prompt.is_object()) fail_form();
    if (find_field(prompt, "multimodal_data") != nullptr) {
      fail(ErrorCode::kUnsupported, "this server takes text alone: leave \"multimodal_data\" out");
    }
    const auto text = string_field(prompt, "prompt_string");
    if (!text) fail_form();
    return tokenizer_.tokenize(*text, {.parse_special = true});
  }

  const Tokenizer& tokenizer_;
  const PromptFieldOptions& options_;
};

}  // namespace

PromptField read_prompt_field(const Json& prompt, const Tokenizer& tokenizer,
                              const PromptFieldOptions& options) {
  return PromptReader(tokenizer, options).read(prompt);
}

void check_fits(const std::vector<TokenId>& prompt, int n_context) {
  if (static_cast<int>(prompt.size()) >= n_context) {
    throw ContextError(static_cast<int>(prompt.size()), n_context);
  }
}

}  // namespace forerun
