#include "serve/protocol/anthropic_request.h"

#include <string>
#include <vector>

#include "core/error.h"

namespace forerun {
namespace {

[[noreturn]] void fail_block(const std::string& type) {
  fail(ErrorCode::kInvalidArgument,
       "content of type \"{}\" is not supported: this server takes text and tools", type);
}

// A text, or the texts of an array of blocks.
std::string text_of(const Json& content) {
  if (content.is_string()) return content;
  if (!content.is_array())
    fail(ErrorCode::kInvalidArgument, "\"content\" must be a string or an array of blocks");
  std::string text;
  for (const Json& block : content) {
    if (!block.is_object()) fail(ErrorCode::kInvalidArgument, "\"content\" must hold objects");
    const std::string type = string_field(block, "type").value_or("");
    if (type != "text") fail_block(type);
    text += string_field(block, "text").value_or("");
  }
  return text;
}

// A turn of the user: what tools returned first, each a message of its own, then what is said.
void add_user(const Json& content, Json& messages) {
  Json parts = Json::array();
  for (const Json& block : content) {
    if (!block.is_object()) fail(ErrorCode::kInvalidArgument, "\"content\" must hold objects");
    const std::string type = string_field(block, "type").value_or("");
    if (type == "tool_result") {
      const Json* result = find_field(block, "content");
      messages.push_back({{"role", "tool"},
                          {"tool_call_id", string_field(block, "tool_use_id").value_or("")},
                          {"content", result != nullptr ? text_of(*result) : std::string()}});
    } else if (type == "text") {
      parts.push_back({{"type", "text"}, {"text", string_field(block, "text").value_or("")}});
    } else {
      fail_block(type);
    }
  }
  if (!parts.empty()) messages.push_back({{"role", "user"}, {"content", parts}});
}

void add_assistant(const Json& content, Json& messages) {
  std::string text, reasoning;
  Json calls = Json::array();
  for (const Json& block : content) {
    if (!block.is_object()) fail(ErrorCode::kInvalidArgument, "\"content\" must hold objects");
    const std::string type = string_field(block, "type").value_or("");
    if (type == "text") {
      text += string_field(block, "text").value_or("");
    } else if (type == "thinking") {
      reasoning += string_field(block, "thinking").value_or("");
    } else if (type == "tool_use") {
      const Json* input = object_field(block, "input");
      calls.push_back({{"id", string_field(block, "id").value_or("")},
                       {"type", "function"},
                       {"function",
                        {{"name", string_field(block, "name").value_or("")},
                         {"arguments", input != nullptr ? to_text(*input) : std::string("{}")}}}});
    } else if (type != "redacted_thinking") {
      fail_block(type);
    }
  }
  Json message = {{"role", "assistant"}, {"content", text}};
  if (!reasoning.empty()) message["reasoning_content"] = reasoning;
  if (!calls.empty()) message["tool_calls"] = calls;
  messages.push_back(message);
}

Json messages_of(const Json& request) {
  const Json* given = array_field(request, "messages");
  if (given == nullptr || given->empty()) {
    fail(ErrorCode::kInvalidArgument, "\"messages\" is missing: an array of messages");
  }
  Json messages = Json::array();
  if (const Json* system = find_field(request, "system")) {
    messages.push_back({{"role", "system"}, {"content", text_of(*system)}});
  }
  for (const Json& message : *given) {
    if (!message.is_object()) fail(ErrorCode::kInvalidArgument, "\"messages\" must hold objects");
    const auto role = string_field(message, "role");
    const Json* content = find_field(message, "content");
    if (!role || content == nullptr)
      fail(ErrorCode::kInvalidArgument, "a message has no \"role\" or no \"content\"");
    if (content->is_string()) {
      messages.push_back({{"role", *role}, {"content", *content}});
    } else if (!content->is_array()) {
      fail(ErrorCode::kInvalidArgument, "\"content\" must be a string or an array of blocks");
    } else if (*role == "assistant") {
      add_assistant(*content, messages);
    } else {
      add_user(*content, messages);
    }
  }
  return messages;
}

Json tools_of(const Json& tools) {
  Json result = Json::array();
  for (const Json& tool : tools) {
    if (!tool.is_object()) fail(ErrorCode::kInvalidArgument, "\"tools\" must hold objects");
    const Json* schema = object_field(tool, "input_schema");
    result.push_back({{"type", "function"},
                      {"function",
                       {{"name", string_field(tool, "name").value_or("")},
                        {"description", string_field(tool, "description").value_or("")},
                        {"parameters", schema != nullptr ? *schema : Json{{"type", "object"}}}}}});
  }
  return result;
}

Json tool_choice_of(const Json& choice) {
  const std::string type = string_field(choice, "type").value_or("auto");
  if (type == "any") return "required";
  if (type != "tool") return type;
  return {{"type", "function"}, {"function", {{"name", string_field(choice, "name").value_or("")}}}};
}

}  // namespace

Json chat_request_of_anthropic(const Json& request) {
  Json chat = request;
  for (const char* name : {"system", "stop_sequences", "tool_choice", "tools", "thinking", "metadata"}) {
    chat.erase(name);
  }
  chat["messages"] = messages_of(request);
  chat["n"] = 1;  // answers have one choice
  if (const Json* stops = array_field(request, "stop_sequences")) chat["stop"] = *stops;
  if (const Json* tools = array_field(request, "tools")) chat["tools"] = tools_of(*tools);
  if (const Json* choice = object_field(request, "tool_choice")) {
    chat["tool_choice"] = tool_choice_of(*choice);
    if (bool_field(*choice, "disable_parallel_tool_use").value_or(false))
      chat["parallel_tool_calls"] = false;
  }
  if (const Json* thinking = object_field(request, "thinking")) {
    object_field(request, "chat_template_kwargs");  // an object, or absent
    chat["chat_template_kwargs"]["enable_thinking"] = string_field(*thinking, "type") == "enabled";
  }
  return chat;
}

}  // namespace forerun
