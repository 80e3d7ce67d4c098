// What requests say, in all protocols, before a model sees them.
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "serve/protocol/anthropic_request.h"
#include "serve/protocol/json_fields.h"
#include "serve/protocol/response_format.h"
#include "serve/protocol/responses_request.h"

namespace forerun {
namespace {

TEST(JsonFieldsTest, FieldsAreCheckedByName) {
  const Json body = parse_object(R"({"a": 1, "b": "x", "c": null, "d": 1.5, "e": true, "f": []})");
  EXPECT_EQ(int_field(body, "a"), 1);
  EXPECT_EQ(string_field(body, "b"), "x");
  EXPECT_EQ(int_field(body, "c"), std::nullopt);
  EXPECT_EQ(int_field(body, "missing"), std::nullopt);
  EXPECT_EQ(number_field(body, "d"), 1.5);
  EXPECT_EQ(bool_field(body, "e"), true);
  EXPECT_NE(array_field(body, "f"), nullptr);
  EXPECT_THROW(int_field(body, "b"), Error);
  EXPECT_THROW(int_field(body, "d"), Error);
  EXPECT_THROW(int_field(body, "a", 2, 3), Error);
  EXPECT_THROW(bool_field(body, "a"), Error);
  EXPECT_THROW(object_field(body, "f"), Error);
  try {
    string_field(body, "a");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "\"a\" must be a string");
  }
}

TEST(JsonFieldsTest, BodiesAreObjects) {
  for (const std::string& body : {std::string(), std::string("{"), std::string("[]"), std::string("3"),
                                  "{\"a\":" + std::string(300, '[') + std::string(300, ']') + "}",
                                  std::string(100'000, '['), std::string("{\"a\": \"\xff\"}")}) {
    EXPECT_THROW(parse_object(body), Error) << body.substr(0, 20);
  }
}

TEST(ResponseFormatTest, SchemasAndGrammars) {
  const auto schema = [](const char* request) {
    return read_response_format(parse_object(request)).schema;
  };
  EXPECT_EQ(schema("{}"), "");
  EXPECT_EQ(schema(R"({"response_format": {"type": "text"}})"), "");
  EXPECT_EQ(schema(R"({"response_format": {"type": "json_object"}})"), R"({"type":"object"})");
  EXPECT_EQ(
      schema(R"({"response_format": {"type": "json_schema", "json_schema": {"schema": {"const": 1}}}})"),
      R"({"const":1})");
  EXPECT_EQ(schema(R"({"json_schema": {"const": 2}})"), R"({"const":2})");
  EXPECT_EQ(read_response_format(parse_object(R"({"grammar": "root ::= \"a\""})")).grammar,
            "root ::= \"a\"");
  for (const char* request : {R"({"response_format": {"type": "sound"}})",
                              R"({"response_format": {"type": "json_object", "schema": 3}})",
                              R"({"response_format": {"type": "json_schema"}})",
                              R"({"json_schema": {"const": 2}, "grammar": "x"})"}) {
    EXPECT_THROW(read_response_format(parse_object(request)), Error) << request;
  }
}

TEST(AnthropicRequestTest, BecomesAChat) {
  const Json chat = chat_request_of_anthropic(parse_object(R"({
    "system": [{"type": "text", "text": "Be brief."}], "max_tokens": 5, "stop_sequences": ["x"],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"},
    "messages": [
      {"role": "user", "content": "Hi"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Well"},
                                        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}]},
      {"role": "user", "content": [{"type": "text", "text": "Look"},
                                   {"type": "tool_result", "tool_use_id": "t1", "content": "7"}]}]})"));
  const Json& messages = chat["messages"];
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[2]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(messages[2]["reasoning_content"], "hm");
  EXPECT_EQ(messages[3]["role"], "tool");
  EXPECT_EQ(messages[4]["role"], "user");
  EXPECT_EQ(chat["stop"], Json::array({"x"}));
  EXPECT_EQ(chat["tool_choice"], "required");
  EXPECT_EQ(chat["tools"][0]["function"]["name"], "f");
  EXPECT_EQ(chat["max_tokens"], 5);
  for (const char* request :
       {"{}", R"({"messages": []})", R"({"messages": [3]})", R"({"messages": [{"role": "user"}]})",
        R"({"messages": [{"role": "user", "content": [{"type": "image"}]}]})"}) {
    EXPECT_THROW(chat_request_of_anthropic(parse_object(request)), Error) << request;
  }
}

TEST(ResponsesRequestTest, BecomesAChat) {
  const Json chat = chat_request_of_responses(parse_object(R"({
    "instructions": "Be brief.", "max_output_tokens": 9,
    "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
              {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
              {"type": "function_call_output", "call_id": "c", "output": "7"}],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]})"));
  const Json& messages = chat["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1]["content"], "Hi");
  EXPECT_EQ(messages[2]["tool_calls"][0]["id"], "c");
  EXPECT_EQ(messages[3]["content"], "7");
  EXPECT_EQ(chat["max_tokens"], 9);
  EXPECT_EQ(chat["tools"][0]["function"]["name"], "f");
  EXPECT_EQ(chat_request_of_responses(parse_object(R"({"input": "Hi"})"))["messages"][0]["content"],
            "Hi");
  for (const char* request : {"{}", R"({"input": 3})", R"({"input": [{"type": "image"}]})",
                              R"({"input": "x", "previous_response_id": "y"})"}) {
    EXPECT_THROW(chat_request_of_responses(parse_object(request)), Error) << request;
  }
}

}  // namespace
}  // namespace forerun
