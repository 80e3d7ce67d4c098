#include "chat/chat_format.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace forerun {
namespace {

constexpr const char* kAsk = R"([{"role": "user", "content": "Weather in Rome?"}])";
constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "weather", "description": "The weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])";
// As Qwen's models write calls.
constexpr const char* kTemplate =
    "{%- if tools %}<|im_start|>system\nTools:\n{%- for tool in tools %}\n{{ tool | tojson }}{%- endfor "
    "%}\n"
    "Answer with <tool_call>\n{\"name\": <name>, \"arguments\": <args>}\n</tool_call><|im_end|>\n{%- "
    "endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{%- if message.tool_calls %}{%- for call in message.tool_calls %}\n<tool_call>\n{\"name\": \"{{ "
    "call.function.name }}\", "
    "\"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>{%- endfor %}{%- endif "
    "%}<|im_end|>\n{%- endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{%- endif %}";

TEST(ChatFormatTest, RendersAConversation) {
  const ChatFormat format = ChatFormat::from_source("chatml", "", "");
  const ChatPrompt prompt = format.apply({.messages = kAsk});
  EXPECT_EQ(prompt.text, "<|im_start|>user\nWeather in Rome?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(prompt.parser, nullptr) << "all of it is content";
  EXPECT_TRUE(prompt.grammar.empty());
}

TEST(ChatFormatTest, KnowsTemplatesByName) {
  const ChatPrompt prompt = ChatFormat::from_source("llama3", "", "").apply({.messages = kAsk});
  EXPECT_NE(prompt.text.find("<|start_header_id|>user<|end_header_id|>"), std::string::npos)
      << prompt.text;
}

TEST(ChatFormatTest, GoesOnWithWhatTheAssistantBegan) {
  const ChatPrompt prompt =
      ChatFormat::from_source("chatml", "", "")
          .apply({.messages =
                      R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hel"}])",
                  .continues_last_message = true});
  EXPECT_TRUE(prompt.text.ends_with("assistant\nHel")) << prompt.text;
}

TEST(ChatFormatTest, ACallThatMustBeMadeComesAtOnce) {
  const ChatPrompt prompt = ChatFormat::from_source(kTemplate, "", "")
                                .apply({.messages = kAsk, .tools = kTools, .tool_choice = "required"});
  EXPECT_FALSE(prompt.grammar_is_lazy);
  const size_t begin = prompt.grammar.find("\nroot ::= ");
  ASSERT_NE(begin, std::string::npos);
  const std::string root =
      prompt.grammar.substr(begin + 1, prompt.grammar.find('\n', begin + 1) - begin - 1);
  EXPECT_NE(root.find("tool-call"), std::string::npos) << root;
  EXPECT_EQ(root.find("until-"), std::string::npos) << root;
}

TEST(ChatFormatTest, ReadsToolCallsAsTheyCome) {
  const ChatPrompt prompt =
      ChatFormat::from_source(kTemplate, "", "").apply({.messages = kAsk, .tools = kTools});
  ASSERT_NE(prompt.parser, nullptr);
  EXPECT_NE(prompt.text.find("\"weather\""), std::string::npos);
  EXPECT_TRUE(prompt.grammar_is_lazy);
  const std::string text =
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
  const ChatAnswer answer = prompt.parser->parse(text, /*is_partial=*/false);
  ASSERT_EQ(answer.tool_calls.size(), 1u);
  EXPECT_EQ(answer.tool_calls[0].name, "weather");
  EXPECT_EQ(answer.tool_calls[0].arguments.find("Rome") != std::string::npos, true);
  // Whatever was said of a part is a beginning of what is said of the whole.
  std::string arguments;
  ChatAnswer before;
  for (size_t n = 1; n <= text.size(); ++n) {
    const ChatAnswer now = prompt.parser->parse(text.substr(0, n), n < text.size());
    for (const ChatDelta& delta : chat_deltas(before, now)) arguments += delta.call.arguments;
    before = now;
  }
  EXPECT_EQ(arguments, answer.tool_calls[0].arguments);
  EXPECT_EQ(prompt.parser->parse("Sunny.", false).content, "Sunny.");
}

TEST(ChatFormatTest, RequestsThatMakeNoSenseAreErrors) {
  const ChatFormat format = ChatFormat::from_source("chatml", "", "");
  for (const char* messages : {"", "3", "[3]", "[{}]", R"([{"role": "user", "content": 3}])"}) {
    EXPECT_THROW(format.apply({.messages = messages}), Error) << messages;
  }
  EXPECT_THROW(format.apply({.messages = kAsk, .tools = "{"}), Error);
  EXPECT_THROW(format.apply({.messages = kAsk, .tool_choice = "perhaps"}), Error);
  EXPECT_THROW(ChatFormat::from_source("{% if %}", "", ""), Error);
}

std::string text_of(const std::string& source, const ChatRequest& request) {
  return ChatFormat::from_source(source, "<s>", "</s>").apply(request).text;
}

TEST(ChatFormatTest, TemplatesSeeWhatClientsSent) {
  EXPECT_EQ(text_of("{{ messages[0]|tojson }}",
                    {.messages = R"([{"role": "user", "content": "Hi", "extra": 1}])"}),
            R"({"role": "user", "content": "Hi", "extra": 1})");
  EXPECT_EQ(
      text_of("{{ tools|tojson }}", {.messages = kAsk, .tools = R"([{"type": "function", "strict": true,
      "function": {"parameters": {"type": "object"}, "name": "f"}}])"}),
      R"([{"type": "function", "strict": true, "function": {"parameters": {"type": "object"}, "name": "f"}}])");
  EXPECT_EQ(
      text_of(
          "{{ tools is none }}{{ date_string is defined }}{{ enable_thinking is defined }}{{ mood }}",
          {.messages = kAsk, .arguments = {{"mood", "\"good\""}}}),
      "TrueFalseFalsegood");
  EXPECT_EQ(text_of("{{ enable_thinking }}", {.messages = kAsk, .thinks = false}), "False");
}

TEST(ChatFormatTest, ThoughtsGoByAllTheirNames) {
  const char* messages =
      R"([{"role": "assistant", "content": "4", "reasoning": "2 + 2"}, {"role": "user", "content": "?"}])";
  EXPECT_EQ(
      text_of("{{ messages[0].thinking }}|{{ messages[0].reasoning_content }}", {.messages = messages}),
      "2 + 2|2 + 2");
}

TEST(ChatFormatTest, WhatATemplateRefusesIsAnError) {
  const char* source =
      "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif "
      "%}"
      "{{ messages[0].content }}";
  try {
    text_of(
        source,
        {.messages = R"([{"role": "system", "content": "Be."}, {"role": "user", "content": "Hi"}])"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the model's chat template refuses these messages: System role not supported");
  }
}

// Clients send arguments as JSON in a text, and null where there is no content.
TEST(ChatFormatTest, CallsComeInTheFormThatATemplateKnows) {
  const std::string messages =
      R"([{"role": "user", "content": "?"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1",
      "type": "function", "function": {"name": "f", "arguments": "{\"b\": 1, \"a\": 2.0}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "3"}])";
  const std::string loop = "{% for m in messages %}{% for c in m.tool_calls %}";
  const std::string end = "{% endfor %}{% endfor %}";
  EXPECT_EQ(text_of(loop + "{{ c.function.arguments|tojson }}" + end, {.messages = messages}),
            R"({"b": 1, "a": 2.0})");
  EXPECT_EQ(text_of(loop + "{{ 'x' + c.function.arguments }}" + end, {.messages = messages}),
            R"(x{"b": 1, "a": 2.0})");
  EXPECT_EQ(text_of("{{ messages[1].content is none }}", {.messages = messages}), "True");
  EXPECT_EQ(text_of("{{ '[' + messages[1].content + ']' }}", {.messages = messages}), "[]");
}

TEST(ChatFormatTest, SchemasBecomeGrammars) {
  EXPECT_NE(grammar_of_schema(R"({"const": "42"})").find("42"), std::string::npos);
  for (const char* schema : {"", "{", R"({"type": 123})", R"({"type": "hiccup"})"}) {
    EXPECT_THROW(grammar_of_schema(schema), Error) << schema;
  }
}

}  // namespace
}  // namespace forerun
