#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "core/error.h"
#include "text/template_guard.h"
#include "text/test_vocabularies.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace forerun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% "
    "endif %}";

const std::vector<ChatMessage> kConversation = {
    {"user", "hello {{ world }}"}, {"assistant", "he"}, {"user", "<b>&\"漢字🙂\n"}};

std::string render(const std::string& source, const std::vector<ChatMessage>& messages = kConversation,
                   bool add_generation_prompt = true) {
  return ChatTemplate::from_source(source, {"<s>", "</s>"}).render(messages, add_generation_prompt);
}

std::string error_of(ErrorCode code, const std::string& source) {
  try {
    render(source);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::string repeated(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

TEST(ChatTemplate, RendersMessagesAsTheyAre) {
  EXPECT_EQ(render(kChatMl),
            "<|im_start|>user\nhello {{ world }}<|im_end|>\n<|im_start|>assistant\nhe<|im_end|>\n"
            "<|im_start|>user\n<b>&\"漢字🙂\n<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_THAT(render(kChatMl, kConversation, false), Not(HasSubstr("assistant\n<|im_end|>")));
  EXPECT_EQ(render(kChatMl, {}, true), "<|im_start|>assistant\n");
  EXPECT_EQ(render(kChatMl, {}, false), "");
}

TEST(ChatTemplate, GivesTemplatesWhatTheyExpect) {
  EXPECT_EQ(render("{{ bos_token }}{{ messages|length }}{{ eos_token }}"), "<s>3</s>");
  EXPECT_EQ(render("{{ tools is none }}{{ documents is none }}{{ enable_thinking is defined }}"),
            "TrueTrueFalse");
  EXPECT_EQ(render("{% for i in range(2, 8, 3) %}{{ i }},{% endfor %}"), "2,5,");
  const std::string year = render("{{ strftime_now('%Y') }}");
  EXPECT_EQ(year.size(), 4u);
  EXPECT_GE(year, "2024");
}

TEST(ChatTemplate, ComesFromTheFile) {
  const gguf_context_ptr gguf = make_sentence_piece();
  const GgufMetadata metadata(gguf.get());
  EXPECT_FALSE(ChatTemplate::from(metadata).has_value());
  gguf_set_val_str(gguf.get(), "tokenizer.chat_template",
                   "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}");
  EXPECT_EQ(ChatTemplate::from(metadata)->render(kConversation, true), "<s>hello {{ world }}</s>");
  gguf_remove_key(gguf.get(), "tokenizer.ggml.bos_token_id");  // SentencePiece has a usual one
  EXPECT_EQ(ChatTemplate::from(metadata)->render(kConversation, true), "<s>hello {{ world }}</s>");
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.bos_token_id", 20'000);
  EXPECT_EQ(ChatTemplate::from(metadata)->render(kConversation, true), "hello {{ world }}</s>");
  gguf_set_val_u32(gguf.get(), "tokenizer.chat_template", 1);
  EXPECT_THROW(ChatTemplate::from(metadata), Error);
}

TEST(ChatTemplate, BeginsATextOnce) {
  const Vocabulary vocabulary = Vocabulary::load(GgufMetadata(make_sentence_piece().get()));
  const std::vector<ChatMessage> messages = {{"user", "hello"}};
  const std::string with = render("{{ bos_token }}{{ messages[0].content }}", messages);
  const std::string without = render("{{ messages[0].content }}", messages);
  EXPECT_EQ(vocabulary.tokenize_rendered(with), vocabulary.tokenize_rendered(without));
}

TEST(ChatTemplate, SaysWhyATemplateRefuses) {
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, "{{ raise_exception('System role\nnot supported') }}"),
            "the model's chat template refuses these messages: System role not supported");
  EXPECT_THAT(error_of(ErrorCode::kUnsupported, "{{ messages | no_such_filter }}"),
              HasSubstr("no_such_filter"));
  EXPECT_THAT(error_of(ErrorCode::kUnsupported, "{{ messages.foo() }}"), HasSubstr("failed"));
  EXPECT_THAT(error_of(ErrorCode::kUnsupported, "{% break %}"), HasSubstr("failed"));
}

TEST(ChatTemplate, RefusesMessagesThatAreNotUtf8) {
  const ChatTemplate chat = ChatTemplate::from_source(kChatMl, {});
  const std::vector<ChatMessage> messages = {{"user", "fine"}, {"user", "ab\xFF"}};
  try {
    chat.render(messages, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "message 2 is not valid UTF-8 (at byte 2 of its content)");
  }
}

// Every prefix of a template, and the template with one byte missing or replaced:
// renders or throws an Error.
TEST(ChatTemplate, DamagedTemplatesNeverAbort) {
  const std::string source =
      std::string(kChatMl) +
      "{%- macro f(x, y=1) -%}{{ x + y }}{%- endmacro -%}{{ f(2) }}{# note #}"
      "{% set a = [1, {'k': 'v'}] %}{{ a[1].k if a else 'no' }}{{ a[0:1] | tojson }}";
  ASSERT_THAT(render(source), HasSubstr("3v[1]"));
  const auto try_it = [](const std::string& text) {
    try {
      render(text);
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), Not(HasSubstr("\n"))) << text;
      ASSERT_TRUE(is_valid_utf8(error.what())) << text;
    }
  };
  for (size_t i = 0; i < source.size(); ++i) {
    try_it(source.substr(0, i));
    try_it(std::string(source).erase(i, 1));
    for (const char c : {'{', '}', '%', '(', '\'', '|', '\\', '\xFF', '\0'}) {
      std::string damaged = source;
      damaged[i] = c;
      try_it(damaged);
    }
  }
}

TEST(ChatTemplate, LimitsNesting) {
  const auto too_deep = [](const std::string& source) {
    return error_of(ErrorCode::kUnsupported, source);
  };
  EXPECT_THAT(too_deep("{{ " + repeated("(", 20'000) + "1" + repeated(")", 20'000) + " }}"),
              HasSubstr("deep"));
  EXPECT_THAT(too_deep("{{ " + repeated("[", 20'000)), HasSubstr("deep"));
  EXPECT_THAT(too_deep("{{ " + repeated("not ", 20'000) + "1 }}"), HasSubstr("too long"));
  EXPECT_THAT(too_deep("{{ 1" + repeated(" + 1", 20'000) + " }}"), HasSubstr("too long"));
  EXPECT_THAT(too_deep(repeated("{% if 1 %}", 20'000) + repeated("{% endif %}", 20'000)),
              HasSubstr("deep"));
  EXPECT_THAT(too_deep("{% if 0 %}" + repeated("{% elif 0 %}", 20'000) + "{% endif %}"),
              HasSubstr("deep"));
  EXPECT_THAT(too_deep(repeated("{% set x %}", 20'000)), HasSubstr("deep"));
  EXPECT_THAT(too_deep(repeated("x", TemplateLimits::kMaxSourceBytes + 1)), HasSubstr("at most"));
  // What is at the limits still works.
  EXPECT_EQ(render("{{ " + repeated("(", 64) + "1" + repeated(")", 64) + " }}"), "1");
  EXPECT_EQ(render("{{ 1" + repeated(" + 1", 500) + " }}"), "501");
  EXPECT_EQ(render(repeated("{% for x in [1] %}", 64) + "y" + repeated("{% endfor %}", 64)), "y");
}

TEST(ChatTemplate, StopsEndlessTemplates) {
  const auto fails = [](const std::string& source) { return error_of(ErrorCode::kUnsupported, source); };
  EXPECT_THAT(fails("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("too deeply"));
  EXPECT_THAT(fails("{% macro f(x=f()) %}{% endmacro %}{{ f() }}"), HasSubstr("too deeply"));
  EXPECT_THAT(fails("{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}"),
              HasSubstr("too deeply"));
  EXPECT_THAT(fails("{{ range(1000000000000) }}"), HasSubstr("too many"));
  EXPECT_THAT(fails("{{ range(0, -1000000000000, -1) }}"), HasSubstr("too many"));
  EXPECT_THAT(fails("{{ 4 is divisibleby(0) }}"), HasSubstr("divisibleby"));
  // Macros that end are fine, however often they call themselves.
  EXPECT_EQ(
      render("{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(9) }}"),
      "9876543210");
}

TEST(ChatTemplate, ServesManyThreads) {
  const ChatTemplate chat =
      ChatTemplate::from_source(std::string(kChatMl) + "{{ strftime_now('%Y') }}", {});
  const std::string expected = chat.render(kConversation, true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) EXPECT_EQ(chat.render(kConversation, true), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace forerun
