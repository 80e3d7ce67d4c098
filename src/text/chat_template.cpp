#include "text/chat_template.h"

#include <gguf.h>

#include <exception>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"
#include "json.h"
#include "text/template_guard.h"
#include "text/template_python.h"
#include "text/utf8.h"

namespace forerun {

struct ChatTemplate::Program {
  std::string source;
  SpecialTokens tokens;
  jinja::program program;
};

namespace {

constexpr std::string_view kRefusal = "Jinja Exception: ";  // by raise_exception() of the template

// The engine's message without the source that it quotes ("...\nError: reason", or
// "lexer: reason\nsource"), on one line.
std::string reason_of(const std::exception& error) {
  static constexpr std::string_view kMark = "\nError: ";
  std::string_view message = error.what();
  const size_t mark = message.find(kMark);
  if (mark != std::string_view::npos) {
    message.remove_prefix(mark + kMark.size());
  } else if (message.starts_with("lexer: ") || message.starts_with("parser: ")) {
    message = message.substr(0, message.find('\n'));
  }
  Utf8Stream utf8;
  std::string reason = utf8.push(message);
  reason += utf8.flush();
  for (char& c : reason) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return reason;
}

// The text of the token that the file names in `key`, or else has as `fallback`;
// empty if there is none.
std::string token_text(const GgufMetadata& metadata, const char* key, std::optional<int64_t> fallback) {
  const auto id = metadata.get_int(key) ? metadata.get_int(key) : fallback;
  const int64_t tokens = gguf_find_key(metadata.raw(), "tokenizer.ggml.tokens");
  if (!id || tokens < 0 || !metadata.is_array("tokenizer.ggml.tokens") ||
      gguf_get_arr_type(metadata.raw(), tokens) != GGUF_TYPE_STRING || *id < 0 ||
      static_cast<size_t>(*id) >= gguf_get_arr_n(metadata.raw(), tokens)) {
    return "";
  }
  return gguf_get_arr_str(metadata.raw(), tokens, static_cast<size_t>(*id));
}

void check_messages(std::span<const ChatMessage> messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const std::string* text : {&messages[i].role, &messages[i].content}) {
      if (const auto invalid = first_invalid_byte(*text)) {
        fail(ErrorCode::kInvalidArgument, "message {} is not valid UTF-8 (at byte {} of its {})", i + 1,
             *invalid, text == &messages[i].role ? "role" : "content");
      }
    }
  }
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::from(const GgufMetadata& metadata) {
  auto source = metadata.get_string("tokenizer.chat_template");
  if (!source || source->empty()) return std::nullopt;
  // SentencePiece vocabularies that do not name these tokens have them here.
  const bool sentence_piece = metadata.get_string("tokenizer.ggml.model") == "llama";
  const auto fallback = [&](int64_t id) { return sentence_piece ? std::optional(id) : std::nullopt; };
  return from_source(*std::move(source),
                     {.bos = token_text(metadata, "tokenizer.ggml.bos_token_id", fallback(1)),
                      .eos = token_text(metadata, "tokenizer.ggml.eos_token_id", fallback(2))});
}

ChatTemplate ChatTemplate::from_source(std::string source, SpecialTokens tokens) {
  if (source.size() > TemplateLimits::kMaxSourceBytes) {
    fail(ErrorCode::kUnsupported, "the chat template has {} bytes; at most {} are supported",
         source.size(), TemplateLimits::kMaxSourceBytes);
  }
  try {
    const jinja::lexer_result lexed = jinja::lexer().tokenize(source);
    check_template_tokens(lexed);
    jinja::program program = jinja::parse_from_tokens(lexed);
    follow_python(program);
    guard_program(program);
    return ChatTemplate(std::make_shared<const Program>(
        Program{std::move(source), std::move(tokens), std::move(program)}));
  } catch (const std::exception& error) {
    fail(ErrorCode::kUnsupported, "the chat template cannot be used: {}", reason_of(error));
  }
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 bool add_generation_prompt) const {
  check_messages(messages);
  common_json list = common_json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  common_json variables = common_json::object();
  variables["messages"] = std::move(list);
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = add_generation_prompt;
  return render(variables.dump());
}

std::string ChatTemplate::render(const std::string& variables) const {
  try {
    jinja::context context(program_->source);
    set_guarded_functions(context);
    context.set_val("bos_token", jinja::mk_val<jinja::value_string>(program_->tokens.bos));
    context.set_val("eos_token", jinja::mk_val<jinja::value_string>(program_->tokens.eos));
    jinja::global_from_json(context, common_json::parse(variables), /*mark_input=*/false);

    const TemplateRun run;
    const jinja::value parts = jinja::runtime(context).execute(program_->program);
    return jinja::runtime::gather_string_parts(parts)->as_string().str();
  } catch (const std::exception& error) {
    const std::string reason = reason_of(error);
    if (reason.starts_with(kRefusal)) {
      fail(ErrorCode::kInvalidArgument, "the model's chat template refuses these messages: {}",
           reason.substr(kRefusal.size()));
    }
    fail(ErrorCode::kUnsupported, "the model's chat template failed: {}", reason);
  }
}

const std::string& ChatTemplate::source() const {
  return program_->source;
}

const ChatTemplate::SpecialTokens& ChatTemplate::tokens() const {
  return program_->tokens;
}

}  // namespace forerun
