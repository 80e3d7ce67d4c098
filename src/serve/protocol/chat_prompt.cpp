#include "serve/protocol/chat_prompt.h"

#include "core/error.h"
#include "serve/protocol/response_format.h"

namespace forerun {
namespace {

// "auto", "none" or "required". One function that is named is the only one there is.
std::string read_tool_choice(const Json& request, Json& tools) {
  const Json* choice = find_field(request, "tool_choice");
  if (choice == nullptr) return "auto";
  if (choice->is_string()) {
    const auto name = choice->get<std::string>();
    if (name == "auto" || name == "none" || name == "required") return name;
  } else if (choice->is_object()) {
    const Json* function = object_field(*choice, "function");
    const auto name = string_field(function != nullptr ? *function : *choice, "name");
    Json named = Json::array();
    for (const Json& tool : tools) {
      const Json* known = tool.is_object() ? object_field(tool, "function") : nullptr;
      if (name && known != nullptr && string_field(*known, "name") == name) named.push_back(tool);
    }
    tools = std::move(named);
    if (!tools.empty()) return "required";
  }
  fail(ErrorCode::kInvalidArgument,
       "\"tool_choice\" must be \"auto\", \"none\", \"required\", or name one of the functions");
}

void check_messages(const Json& request) {
  const Json* messages = array_field(request, "messages");
  if (messages == nullptr || messages->empty()) {
    fail(ErrorCode::kInvalidArgument, "\"messages\" is missing: an array of messages");
  }
  for (const Json& message : *messages) {
    if (!message.is_object()) fail(ErrorCode::kInvalidArgument, "\"messages\" must hold objects");
    if (!string_field(message, "role")) fail(ErrorCode::kInvalidArgument, "a message has no \"role\"");
  }
}

// The assistant began its answer: that goes on.
bool continues_last(const Json& request, bool adds_generation_prompt) {
  const auto wanted = bool_field(request, "continue_final_message");
  if (wanted.value_or(false) && bool_field(request, "add_generation_prompt").value_or(false)) {
    fail(ErrorCode::kInvalidArgument,
         "\"add_generation_prompt\" and \"continue_final_message\" cannot both be true");
  }
  const Json& messages = request["messages"];
  const auto is_of_assistant = [&](size_t from_end) {
    return messages.size() >= from_end &&
           string_field(messages[messages.size() - from_end], "role") == "assistant";
  };
  const bool ends_so = is_of_assistant(1);
  if (ends_so && is_of_assistant(2)) {
    fail(ErrorCode::kInvalidArgument, "cannot go on with two messages of the assistant: leave one out");
  }
  return wanted.value_or(ends_so && adds_generation_prompt);
}

ChatRequest read_chat_request(const Json& request, const ServeOptions& options) {
  check_messages(request);
  const bool adds_generation_prompt = bool_field(request, "add_generation_prompt").value_or(true);
  Json tools = Json::array();
  if (const Json* given = array_field(request, "tools")) tools = *given;
  ChatRequest chat{.messages = to_text(request["messages"])};
  chat.tool_choice = read_tool_choice(request, tools);
  if (!tools.empty()) chat.tools = to_text(tools);
  chat.parallel_tool_calls = bool_field(request, "parallel_tool_calls").value_or(false);
  chat.adds_generation_prompt = adds_generation_prompt;
  chat.continues_last_message = continues_last(request, adds_generation_prompt);
  chat.separates_thoughts = options.separates_thoughts;
  chat.thinks = options.thinks;
  if (const auto format = string_field(request, "reasoning_format"))
    chat.separates_thoughts = *format != "none";
  if (const Json* arguments = object_field(request, "chat_template_kwargs")) {
    for (const auto& [name, value] : arguments->items()) chat.arguments[name] = to_text(value);
    if (const auto thinks = bool_field(*arguments, "enable_thinking")) chat.thinks = thinks;
  }
  const ResponseFormat format = read_response_format(request);
  chat.json_schema = format.schema;
  chat.grammar = format.grammar;
  return chat;
}

std::string escaped(const std::string& text) {
  static constexpr std::string_view kSpecial = R"(.^$|()*+?[]{}\)";
  std::string result;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

void add_triggers(const ChatPrompt& prompt, Grammar& grammar) {
  using Kind = ChatPrompt::Trigger::Kind;
  // They are searched for anywhere. A pattern must not describe the text around them as well: matching
  // it would take as much of the stack as the answer is long.
  for (const ChatPrompt::Trigger& trigger : prompt.triggers) {
    switch (trigger.kind) {
      case Kind::kToken: grammar.trigger_tokens.push_back(TokenId{trigger.token}); break;
      case Kind::kWord: grammar.trigger_patterns.push_back(escaped(trigger.value)); break;
      case Kind::kPattern: grammar.trigger_patterns.push_back(trigger.value); break;
      case Kind::kPatternFull: grammar.trigger_patterns.push_back("^" + trigger.value + "$"); break;
    }
  }
}

std::vector<TokenId> prefix_tokens(const std::string& prefix, const Tokenizer& tokenizer) {
  if (prefix.empty()) return {};
  std::vector<TokenId> tokens =
      tokenizer.tokenize(prefix, {.add_special = false, .parse_special = true});
  // Some tokenizers put a space before a text.
  const bool has_space = tokenizer.piece(tokens.front()).starts_with(' ') && !prefix.starts_with(' ');
  if (has_space) tokens.erase(tokens.begin());
  return tokens;
}

}  // namespace

PreparedChat prepare_chat(const Json& request, const ModelContext& model) {
  const ChatRequest chat = read_chat_request(request, model.options);
  PreparedChat prepared;
  prepared.prompt = model.chat.apply(chat);
  if (chat.tool_choice == "required" && prepared.prompt.grammar.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "\"tool_choice\" asks for a call, but there are no tools, or the model's chat template knows "
         "none: "
         "start the server with one that does (--chat-template-file)");
  }
  prepared.tokens = model.tokenizer.tokenize_rendered(prepared.prompt.text);
  return prepared;
}

void add_chat_fields(const ChatPrompt& prompt, const Tokenizer& tokenizer, AnswerFields& fields) {
  GenerationOptions& generation = fields.generation;
  generation.stop.insert(generation.stop.end(), prompt.stops.begin(), prompt.stops.end());
  if (!prompt.grammar.empty()) {
    generation.grammar = {.text = prompt.grammar, .is_lazy = prompt.grammar_is_lazy};
    add_triggers(prompt, generation.grammar);
    generation.grammar.prefix = prefix_tokens(prompt.grammar_prefix, tokenizer);
  }
  for (const std::string& name : prompt.preserved_tokens) {
    const auto tokens = tokenizer.tokenize(name, {.add_special = false, .parse_special = true});
    if (tokens.size() == 1) generation.visible_tokens.push_back(tokens.front());
  }
}

}  // namespace forerun
