#include "chat/chat_format.h"

#include <llama.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "chat.h"
#include "chat/template_variables.h"
#include "core/error.h"
#include "json-schema-to-grammar.h"
#include "text/chat_template.h"
#include "text/large_stack.h"

namespace forerun {

struct ChatFormat::Templates {
  common_chat_templates_ptr templates;
  TemplateTraits traits;
  // nullopt: a name, of which libllama knows what it means.
  std::optional<ChatTemplate> rendering;

  std::string render(const ChatRequest& request) const;
  common_chat_params known_answers(const common_chat_templates_inputs& inputs) const;
  common_chat_params answers(const ChatRequest& request, common_chat_templates_inputs inputs,
                             const std::string& text) const;
};

namespace {

constexpr size_t kStackBytes = size_t{64} << 20;

constexpr size_t kLongestReason = 300;

// llama.cpp's chat code refuses with whatever exception is at hand. One line of it is for the client, or
// two where the first only announces the second.
[[noreturn]] void refuse(const std::exception& error) {
  std::string message = error.what();
  const size_t end = message.find('\n');
  if (end != std::string::npos && end > 0 && message[end - 1] == ':') message[end] = ' ';
  message = message.substr(0, message.find('\n'));
  if (message.size() > kLongestReason) message = message.substr(0, kLongestReason) + "...";
  fail(ErrorCode::kInvalidArgument, "{}", message);
}

ChatAnswer answer_of(const common_chat_msg& message) {
  ChatAnswer answer{
      .content = message.render_content(), .reasoning = message.reasoning_content, .tool_calls = {}};
  for (const auto& call : message.tool_calls) {
    answer.tool_calls.push_back({.id = call.id, .name = call.name, .arguments = call.arguments});
  }
  return answer;
}

class PegParser final : public ChatParser {
 public:
  PegParser(const common_chat_params& params, bool separates_thoughts) : params_(params) {
    params_.reasoning_format =
        separates_thoughts ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
    if (!params.parser.empty()) params_.parser.load(params.parser);
  }

  ChatAnswer parse(const std::string& text, bool is_partial) const override {
    try {
      return answer_of(common_chat_parse(text, is_partial, params_));
    } catch (const std::exception&) {
      return {.content = text, .reasoning = {}, .tool_calls = {}};
    }
  }

 private:
  common_chat_parser_params params_;
};

ChatPrompt::Trigger trigger_of(const common_grammar_trigger& trigger) {
  using Kind = ChatPrompt::Trigger::Kind;
  ChatPrompt::Trigger result{.kind = Kind::kWord, .value = trigger.value, .token = trigger.token};
  switch (trigger.type) {
    case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN: result.kind = Kind::kToken; break;
    case COMMON_GRAMMAR_TRIGGER_TYPE_WORD: result.kind = Kind::kWord; break;
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN: result.kind = Kind::kPattern; break;
    case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL: result.kind = Kind::kPatternFull; break;
  }
  return result;
}

// A call that must be made comes at once. llama.cpp's grammars let the model say something before, which
// a small one may go on with for ever.
std::string without_preamble(std::string grammar) {
  const size_t root = grammar.find("\nroot ::= ");
  if (root == std::string::npos) return grammar;
  const size_t call = grammar.find("? tool-call", root);
  if (call == std::string::npos || call > grammar.find('\n', root + 1)) return grammar;
  const size_t before = grammar.rfind(' ', call) + 1;
  if (grammar.compare(before, 6, "until-") == 0) grammar.erase(before, call + 2 - before);
  return grammar;
}

bool is_builtin(const std::string& name) {
  std::vector<const char*> names(static_cast<size_t>(llama_chat_builtin_templates(nullptr, 0)));
  llama_chat_builtin_templates(names.data(), names.size());
  return name != "chatml" && std::ranges::find(names, name) != names.end();
}

common_chat_templates_inputs inputs_of(const ChatRequest& request) {
  common_chat_templates_inputs inputs;
  inputs.messages = common_chat_msgs_parse_oaicompat(common_json::parse(request.messages));
  if (!request.tools.empty())
    inputs.tools = common_chat_tools_parse_oaicompat(common_json::parse(request.tools));
  inputs.tool_choice = common_chat_tool_choice_parse_oaicompat(request.tool_choice);
  inputs.parallel_tool_calls = request.parallel_tool_calls;
  inputs.json_schema = request.json_schema;
  inputs.grammar = request.grammar;
  inputs.add_generation_prompt = request.adds_generation_prompt;
  if (request.continues_last_message) inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
  inputs.enable_thinking = request.thinks.value_or(true);
  inputs.reasoning_format =
      request.separates_thoughts ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
  inputs.chat_template_kwargs = request.arguments;
  return inputs;
}

}  // namespace

ChatFormat ChatFormat::from(const GgufMetadata& metadata) {
  const auto known = ChatTemplate::from(metadata);
  return known ? from_source(known->source(), known->tokens().bos, known->tokens().eos)
               : from_source("chatml", "", "");
}

ChatFormat ChatFormat::from_source(const std::string& source, const std::string& bos,
                                   const std::string& eos) {
  auto templates = std::make_shared<Templates>();
  templates->traits.source = source;
  if (source != "chatml" && !is_builtin(source)) {
    templates->rendering = ChatTemplate::from_source(source, {.bos = bos, .eos = eos});
  }
  try {
    templates->templates = common_chat_templates_init(nullptr, source, bos, eos);
    templates->traits.abilities = common_chat_templates_get_caps(templates->templates.get());
  } catch (const std::exception& error) {
    fail(ErrorCode::kUnsupported, "the chat template cannot be used: {}", error.what());
  }
  if (source == "chatml") {
    templates->traits.source = common_chat_templates_source(templates->templates.get());
    templates->rendering = ChatTemplate::from_source(templates->traits.source, {.bos = bos, .eos = eos});
  }
  return ChatFormat(std::move(templates));
}

std::string ChatFormat::Templates::render(const ChatRequest& request) const {
  std::optional<Error> first_error;
  for (const std::string& variables : template_variables(request, traits)) {
    try {
      return rendering->render(variables);
    } catch (const Error& error) {
      if (!first_error) first_error = error;
    }
  }
  throw *first_error;
}

// What llama.cpp knows of answers. Where it cannot read the template, all of an answer is content.
common_chat_params ChatFormat::Templates::known_answers(
    const common_chat_templates_inputs& inputs) const {
  try {
    return common_chat_templates_apply(templates.get(), inputs);
  } catch (const std::exception&) {
    const bool is_content = inputs.tools.empty() && inputs.json_schema.empty() &&
                            inputs.continue_final_message == COMMON_CHAT_CONTINUATION_NONE;
    if (!rendering || !is_content) throw;
    common_chat_params params;
    params.grammar = inputs.grammar;
    return params;
  }
}

// How answers to `text` look and are read. Where nobody said whether the model thinks, that depends on
// what the template made of it: the end of the prompt shows.
common_chat_params ChatFormat::Templates::answers(const ChatRequest& request,
                                                  common_chat_templates_inputs inputs,
                                                  const std::string& text) const {
  common_chat_params params = known_answers(inputs);
  const bool ends_with_prompt = inputs.add_generation_prompt && !request.continues_last_message;
  if (!rendering || !ends_with_prompt || text.ends_with(params.generation_prompt)) return params;
  if (!request.thinks) {
    inputs.enable_thinking = !inputs.enable_thinking;
    common_chat_params other = known_answers(inputs);
    if (text.ends_with(other.generation_prompt)) return other;
  }
  while (!text.ends_with(params.generation_prompt)) params.generation_prompt.pop_back();
  return params;
}

ChatPrompt ChatFormat::apply(const ChatRequest& request) const {
  ChatPrompt prompt;
  // A template may nest deeper than a server's thread has stack for.
  run_on_large_stack(kStackBytes, [&] {
    try {
      common_chat_templates_inputs inputs = inputs_of(request);
      inputs.use_jinja = templates_->rendering.has_value();
      if (inputs.use_jinja) prompt.text = templates_->render(request);
      const common_chat_params params = templates_->answers(request, inputs, prompt.text);
      if (!inputs.use_jinja) {
        prompt.text = params.prompt;
      } else if (request.continues_last_message && params.prompt.ends_with(params.generation_prompt)) {
        prompt.text += params.generation_prompt;
      }
      prompt.stops = params.additional_stops;
      prompt.grammar =
          request.tool_choice == "required" ? without_preamble(params.grammar) : params.grammar;
      prompt.grammar_is_lazy = params.grammar_lazy;
      prompt.preserved_tokens = params.preserved_tokens;
      // A grammar of the client's own is of the answer alone.
      if (request.grammar.empty() && !params.grammar_lazy)
        prompt.grammar_prefix = params.generation_prompt;
      if (!request.tools.empty() || !request.json_schema.empty() || params.supports_thinking) {
        prompt.parser = std::make_shared<PegParser>(params, request.separates_thoughts);
      }
      for (const auto& trigger : params.grammar_triggers) prompt.triggers.push_back(trigger_of(trigger));
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      refuse(error);
    }
  });
  return prompt;
}

const std::string& ChatFormat::source() const {
  return templates_->traits.source;
}

std::map<std::string, bool> ChatFormat::abilities() const {
  return templates_->traits.abilities;
}

std::string grammar_of_schema(const std::string& schema) {
  try {
    return json_schema_to_grammar(common_json::parse(schema));
  } catch (const std::exception& error) {
    refuse(error);
  }
}

std::vector<ChatDelta> chat_deltas(const ChatAnswer& before, const ChatAnswer& now) {
  // What was sent cannot be taken back: only what is longer than before is new.
  const auto grown = [](const std::string& a, const std::string& b) {
    return b.starts_with(a) ? b.substr(a.size()) : std::string();
  };
  std::vector<ChatDelta> deltas;
  const std::string reasoning = grown(before.reasoning, now.reasoning);
  if (!reasoning.empty()) deltas.push_back({.content = {}, .reasoning = reasoning, .call = {}});
  const std::string content = grown(before.content, now.content);
  if (!content.empty()) deltas.push_back({.content = content, .reasoning = {}, .call = {}});
  for (size_t i = 0; i < now.tool_calls.size(); ++i) {
    const ToolCall& call = now.tool_calls[i];
    const bool is_new = i >= before.tool_calls.size();
    const std::string arguments = grown(is_new ? "" : before.tool_calls[i].arguments, call.arguments);
    if (!is_new && arguments.empty()) continue;
    ChatDelta delta{.content = {}, .reasoning = {}, .tool = static_cast<int>(i), .call = {}};
    if (is_new) delta.call = {.id = call.id, .name = call.name, .arguments = {}};
    delta.call.arguments = arguments;
    deltas.push_back(std::move(delta));
  }
  return deltas;
}

}  // namespace forerun
