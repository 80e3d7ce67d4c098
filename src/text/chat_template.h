// The model's own chat template: messages to the text that the model was trained
// to answer, through llama.cpp's Jinja engine, and as Python's would (template_python.h).
//
//   const auto chat = ChatTemplate::from(file.metadata());
//   const std::string text = chat->render(messages, /*add_generation_prompt=*/true);
//   const std::vector<TokenId> prompt = vocabulary.tokenize_rendered(text);
//
// Tokenize what it renders with Vocabulary::tokenize_rendered(): templates write
// control tokens as text, and many, but not all, write the token that begins a
// text, which must not be there twice.
#pragma once

#include <forerun/chat_message.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "gguf/metadata.h"

namespace forerun {

// Cheap to copy; const and thread-safe.
class ChatTemplate {
 public:
  // The texts of the tokens that begin and end a text, for templates that use them.
  struct SpecialTokens {
    std::string bos;
    std::string eos;
  };

  // The file's default template; nullopt if it has none. Throws Error if it cannot
  // be parsed, is past the limits of template_guard.h, or uses what the engine does
  // not support.
  static std::optional<ChatTemplate> from(const GgufMetadata& metadata);
  static ChatTemplate from_source(std::string source, SpecialTokens tokens);

  // Throws Error{kInvalidArgument} if a message is not valid UTF-8 or the template
  // refuses the messages (some know no system role), and Error{kUnsupported} if it
  // fails otherwise.
  std::string render(std::span<const ChatMessage> messages, bool add_generation_prompt) const;
  // The same for whatever else a template may ask for: an object in JSON ("messages", "tools", ...).
  std::string render(const std::string& variables) const;

  const std::string& source() const;
  const SpecialTokens& tokens() const;

 private:
  struct Program;
  explicit ChatTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;
};

}  // namespace forerun
