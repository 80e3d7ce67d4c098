// Conversations with tools, thoughts and schemas: what a model's template makes of them, and what its
// answer means. The prompt is what `transformers` renders (template_variables.h); what answers look like
// and mean is known to llama.cpp's chat code, which knows how each family of models writes these.
//
//   const ChatFormat format = ChatFormat::from(file.metadata());
//   const ChatPrompt prompt = format.apply({.messages = R"([{"role": "user", "content": "Hi"}])"});
//   ... the model continues prompt.text ...
//   const ChatAnswer answer = prompt.parser->parse(text, /*is_partial=*/false);
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"

namespace forerun {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON

  bool operator==(const ToolCall&) const = default;
};

struct ChatAnswer {
  std::string content;
  std::string reasoning;  // what the model thought before
  std::vector<ToolCall> tool_calls;

  bool operator==(const ChatAnswer&) const = default;
};

// What an answer got: further content or thoughts, or of the call `tool` its name and id, or further
// arguments.
struct ChatDelta {
  std::string content;
  std::string reasoning;
  int tool = -1;
  ToolCall call;
};
std::vector<ChatDelta> chat_deltas(const ChatAnswer& before, const ChatAnswer& now);

// Const and thread-safe.
class ChatParser {
 public:
  virtual ~ChatParser() = default;
  // What the text means, of which more may come. Never throws for what a model wrote: what makes no
  // sense is content.
  virtual ChatAnswer parse(const std::string& text, bool is_partial) const = 0;
};

struct ChatRequest {
  std::string messages;              // JSON, as OpenAI has it
  std::string tools = {};            // the same; empty: none
  std::string tool_choice = "auto";  // "auto", "none", "required"
  bool parallel_tool_calls = false;
  std::string json_schema = {};  // that the answer follows; empty: none
  std::string grammar = {};      // the same in GBNF
  bool adds_generation_prompt = true;
  bool continues_last_message = false;  // of the assistant
  std::optional<bool> thinks = {};      // where the template leaves a choice; nullopt: it chooses
  bool separates_thoughts = true;       // from the content
  std::map<std::string, std::string> arguments = {};  // of the template, as JSON
};

struct ChatPrompt {
  std::string text;
  std::vector<std::string> stops;  // further texts that end the answer
  // That the answer follows: always, or from where one of `triggers` begins.
  std::string grammar;
  std::string grammar_prefix;  // the prompt's end, where that is part of what the grammar describes
  bool grammar_is_lazy = false;
  struct Trigger {
    enum class Kind { kToken, kWord, kPattern, kPatternFull };
    Kind kind;
    std::string value;
    int token = -1;
  };
  std::vector<Trigger> triggers;
  std::vector<std::string> preserved_tokens;  // control tokens that belong to the text
  std::shared_ptr<const ChatParser> parser;   // nullptr: all of the answer is content
};

// Cheap to copy; const and thread-safe.
class ChatFormat {
 public:
  // The template of a file; one that many models know where it has none. Throws Error{kUnsupported}
  // where it cannot be parsed.
  static ChatFormat from(const GgufMetadata& metadata);
  // Another one: its source, or a name that libllama knows ("chatml", "llama3").
  static ChatFormat from_source(const std::string& source, const std::string& bos,
                                const std::string& eos);

  // Throws Error{kInvalidArgument} where the request makes no sense, or the template refuses it.
  ChatPrompt apply(const ChatRequest& request) const;

  const std::string& source() const;
  // Which things the template knows: "supports_tools", ...
  std::map<std::string, bool> abilities() const;

 private:
  struct Templates;
  explicit ChatFormat(std::shared_ptr<const Templates> templates) : templates_(std::move(templates)) {}

  std::shared_ptr<const Templates> templates_;
};

// A grammar in GBNF for what follows a JSON schema. Throws Error{kInvalidArgument}.
std::string grammar_of_schema(const std::string& schema);

}  // namespace forerun
