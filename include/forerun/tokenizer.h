// Text to tokens and back, as a model has them.
//
// Cheap to copy. Every function is const and may be called from any thread, also after the
// engine that it came from is gone.
#pragma once

#include <forerun/chat_message.h>
#include <forerun/export.h>
#include <forerun/token.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

struct TokenizeOptions {
  // Add the tokens that the model wants around a text: for most models one that marks its beginning, or
  // nothing.
  bool add_special = true;
  // Read the names of control tokens ("<|im_end|>") as those tokens. Off for text that users write, or
  // they could forge the end of their turn.
  bool parse_special = false;
};

// Tokens that mark the parts of a text whose middle is wanted; models for code have them.
struct InfillTokens {
  std::optional<TokenId> prefix;   // what is before the gap follows
  std::optional<TokenId> suffix;   // what is behind it follows
  std::optional<TokenId> middle;   // what is in it follows
  std::optional<TokenId> project;  // the name of a project follows
  std::optional<TokenId> file;     // the name of a file and its text follow
};

class FORERUN_API Tokenizer {
 public:
  int n_tokens() const;

  // The tokens of a text. Throws Error where that is no UTF-8.
  std::vector<TokenId> tokenize(std::string_view text, TokenizeOptions options = {}) const;
  // The tokens of what a chat template made: control tokens are read as such, and the one that begins a
  // text is added if the model wants one and the template did not write it.
  std::vector<TokenId> tokenize_rendered(std::string_view text) const;
  // The bytes of one token; of control tokens their names.
  std::string piece(TokenId token) const;
  // The text of tokens, control tokens left out. Several tokens may share a character, so that it need
  // not be UTF-8 at its ends.
  std::string detokenize(std::span<const TokenId> tokens) const;

  bool has_chat_template() const;
  // The tokens of a conversation that the model is to go on with. Throws Error where it has no template,
  // or one that refuses the messages.
  std::vector<TokenId> chat_prompt(const std::vector<ChatMessage>& messages) const;

  std::optional<TokenId> bos() const;   // begins a text
  std::optional<TokenId> eos() const;   // ends a text
  bool ends_text(TokenId token) const;  // that one, the end of a turn, ...
  bool adds_bos() const;                // texts begin with bos()
  InfillTokens infill_tokens() const;

 private:
  friend class Engine;
  struct FORERUN_INTERNAL Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<const Impl> impl_;
};

}  // namespace forerun
