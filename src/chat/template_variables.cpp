#include "chat/template_variables.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace forerun {
namespace {

// How the calls and empty contents of messages are given.
struct MessageForm {
  bool has_object_arguments;  // else JSON in a text, as clients send it
  bool has_nulls;             // else empty texts
};

bool can(const TemplateTraits& traits, const char* ability) {
  const auto found = traits.abilities.find(ability);
  return found != traits.abilities.end() && found->second;
}

bool mentions(const TemplateTraits& traits, const char* word) {
  return traits.source.find(word) != std::string::npos;
}

bool is_text_part(const common_json& part) {
  return part.is_object() && part.contains("text") && part.at("text").is_string();
}

// Contents are texts, or lists of parts: clients send either, templates may know one.
void adapt_content(common_json& message, const TemplateTraits& traits) {
  if (!message.contains("content")) return;
  const common_json content = message.at("content");
  const bool knows_texts = can(traits, "supports_string_content");
  const bool knows_parts = can(traits, "supports_typed_content");
  if (content.is_array() && knows_texts && !knows_parts) {
    std::string text;
    for (const common_json& part : content) {
      if (!is_text_part(part)) continue;
      if (!text.empty()) text += '\n';
      text += part.at("text").get<std::string>();
    }
    message["content"] = text;
  } else if (content.is_string() && knows_parts && !knows_texts) {
    message["content"] =
        common_json::array({common_json{{"type", "text"}, {"text", content.get<std::string>()}}});
  }
}

// Thoughts go by several names.
void adapt_thoughts(common_json& message) {
  std::optional<std::string> thoughts;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    if (!thoughts && message.contains(name) && message.at(name).is_string()) {
      thoughts = message.at(name).get<std::string>();
    }
  }
  if (!thoughts) return;
  message["reasoning_content"] = *thoughts;
  if (!message.contains("thinking")) message["thinking"] = *thoughts;
}

void adapt_calls(common_json& message, const MessageForm& form) {
  if (!message.contains("tool_calls") || !message.at("tool_calls").is_array()) return;
  for (common_json& call : message["tool_calls"]) {
    if (!call.contains("function") || !call.at("function").contains("arguments")) continue;
    common_json& arguments = call["function"]["arguments"];
    if (form.has_object_arguments && arguments.is_string()) {
      common_json parsed = common_json::parse_no_throw(arguments.get<std::string>());
      if (!parsed.is_discarded()) arguments = std::move(parsed);
    } else if (!form.has_object_arguments && !arguments.is_string()) {
      arguments = arguments.dump();
    }
  }
}

common_json adapted(common_json message, const TemplateTraits& traits, const MessageForm& form) {
  if (message.value("role", "") == "developer" && !mentions(traits, "developer"))
    message["role"] = "system";
  const bool is_null = !message.contains("content") || message.at("content").is_null();
  if (is_null && !form.has_nulls) message["content"] = "";
  adapt_content(message, traits);
  adapt_thoughts(message);
  adapt_calls(message, form);
  return message;
}

common_json shared_variables(const ChatRequest& request) {
  common_json variables = common_json::object();
  if (request.thinks) variables["enable_thinking"] = *request.thinks;
  if (!request.json_schema.empty())
    variables["response_format"] = common_json::parse(request.json_schema);
  for (const auto& [name, value] : request.arguments) variables[name] = common_json::parse(value);
  variables["tools"] = request.tools.empty() ? common_json(nullptr) : common_json::parse(request.tools);
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  variables["add_generation_prompt"] = request.adds_generation_prompt && !request.continues_last_message;
  return variables;
}

}  // namespace

std::vector<std::string> template_variables(const ChatRequest& request, const TemplateTraits& traits) {
  common_json messages = common_json::parse(request.messages);
  if (request.continues_last_message && !messages.empty()) messages.erase(messages.size() - 1);
  common_json variables = shared_variables(request);
  const bool objects_first = can(traits, "supports_object_arguments");
  std::vector<std::string> result;
  for (const bool has_nulls : {true, false}) {
    for (const bool is_first : {true, false}) {
      const MessageForm form{.has_object_arguments = objects_first == is_first, .has_nulls = has_nulls};
      common_json list = common_json::array();
      for (const common_json& message : messages) list.push_back(adapted(message, traits, form));
      variables["messages"] = std::move(list);
      std::string text = variables.dump();
      if (std::ranges::find(result, text) == result.end()) result.push_back(std::move(text));
    }
  }
  return result;
}

}  // namespace forerun
