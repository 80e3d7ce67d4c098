#include "serve/protocol/responses_request.h"

#include <string>

#include "core/error.h"

namespace forerun {
namespace {

std::string text_of(const Json& content) {
  if (content.is_string()) return content;
  if (!content.is_array())
    fail(ErrorCode::kInvalidArgument, "\"content\" must be a string or an array of parts");
  std::string text;
  for (const Json& part : content) {
    const std::string type = part.is_object() ? string_field(part, "type").value_or("") : "";
    if (type != "input_text" && type != "output_text" && type != "text" && type != "summary_text") {
      fail(ErrorCode::kInvalidArgument,
           "content of type \"{}\" is not supported: this server takes text", type);
    }
    text += string_field(part, "text").value_or("");
  }
  return text;
}

void add_item(const Json& item, Json& messages) {
  if (!item.is_object()) fail(ErrorCode::kInvalidArgument, "\"input\" must hold objects");
  const std::string type = string_field(item, "type").value_or("message");
  const Json* content = find_field(item, "content");
  if (type == "message") {
    const auto role = string_field(item, "role");
    if (!role || content == nullptr)
      fail(ErrorCode::kInvalidArgument, "a message has no \"role\" or no \"content\"");
    messages.push_back(
        {{"role", *role == "developer" ? "system" : *role}, {"content", text_of(*content)}});
  } else if (type == "function_call") {
    const Json call = {{"id", string_field(item, "call_id").value_or("")},
                       {"type", "function"},
                       {"function",
                        {{"name", string_field(item, "name").value_or("")},
                         {"arguments", string_field(item, "arguments").value_or("{}")}}}};
    const bool joins = !messages.empty() && messages.back()["role"] == "assistant";
    if (!joins) messages.push_back({{"role", "assistant"}, {"content", ""}});
    messages.back()["tool_calls"].push_back(call);
  } else if (type == "function_call_output") {
    const Json* output = find_field(item, "output");
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", string_field(item, "call_id").value_or("")},
                        {"content", output != nullptr ? text_of(*output) : std::string()}});
  } else if (type != "reasoning") {
    fail(ErrorCode::kInvalidArgument, "input of type \"{}\" is not supported", type);
  }
}

Json messages_of(const Json& request) {
  Json messages = Json::array();
  if (const auto instructions = string_field(request, "instructions")) {
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  }
  const Json* input = find_field(request, "input");
  if (input == nullptr)
    fail(ErrorCode::kInvalidArgument, "\"input\" is missing: a text or an array of items");
  if (input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", *input}});
  } else if (input->is_array()) {
    for (const Json& item : *input) add_item(item, messages);
  } else {
    fail(ErrorCode::kInvalidArgument, "\"input\" must be a text or an array of items");
  }
  return messages;
}

Json tools_of(const Json& tools) {
  Json result = Json::array();
  for (const Json& tool : tools) {
    if (!tool.is_object() || string_field(tool, "type") != "function") {
      fail(ErrorCode::kInvalidArgument,
           "\"tools\" must hold functions: this server has no tools of its own");
    }
    Json function = tool;
    function.erase("type");
    result.push_back({{"type", "function"}, {"function", function}});
  }
  return result;
}

}  // namespace

Json chat_request_of_responses(const Json& request) {
  if (find_field(request, "previous_response_id") != nullptr) {
    fail(ErrorCode::kUnsupported,
         "\"previous_response_id\" is not supported: send the whole conversation as \"input\"");
  }
  Json chat = request;
  for (const char* name :
       {"input", "instructions", "max_output_tokens", "text", "tools", "reasoning", "metadata"}) {
    chat.erase(name);
  }
  chat["messages"] = messages_of(request);
  chat["n"] = 1;  // answers have one choice
  if (const Json* tools = array_field(request, "tools")) chat["tools"] = tools_of(*tools);
  if (const auto n = int_field(request, "max_output_tokens", 1)) chat["max_tokens"] = *n;
  if (const Json* text = object_field(request, "text")) {
    if (const Json* format = object_field(*text, "format")) chat["response_format"] = *format;
  }
  return chat;
}

}  // namespace forerun
