#include "serve/protocol/openai_chat.h"

#include "api/generation_json.h"
#include "core/error.h"
#include "serve/answer/event_writer.h"
#include "serve/protocol/answer_json.h"
#include "serve/protocol/chat_answer.h"
#include "serve/protocol/chat_text.h"

namespace forerun {
namespace {

Json call_json(const ToolCall& call) {
  return {{"type", "function"},
          {"id", call.id},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json delta_json(const ChatDelta& delta) {
  if (!delta.reasoning.empty()) return {{"reasoning_content", delta.reasoning}};
  if (delta.tool < 0) return {{"content", delta.content}};
  Json call = {{"index", delta.tool}};
  if (!delta.call.name.empty()) {
    call["id"] = delta.call.id;
    call["type"] = "function";
  }
  Json function = {{"arguments", delta.call.arguments}};
  if (!delta.call.name.empty()) function["name"] = delta.call.name;
  call["function"] = std::move(function);
  return {{"tool_calls", Json::array({call})}};
}

class OpenAiChatWriter final : public EventWriter {
 public:
  OpenAiChatWriter(std::shared_ptr<Exchange> exchange, const ModelContext& model, AnswerFields fields,
                   PreparedChat chat)
      : EventWriter(std::move(exchange)),
        model_(model),
        fields_(std::move(fields)),
        chat_(std::move(chat)),
        choices_(static_cast<size_t>(fields_.n_choices), Choice{.text = ChatText(chat_.prompt.parser)}) {
  }

  bool streams() const override { return fields_.streams; }

  bool wants_progress() const override { return fields_.streams && fields_.returns_progress; }
  void progress(int choice, const PromptProgress& progress) override {
    begin(choice);
    Json event = object("chat.completion.chunk");
    event["choices"] =
        Json::array({{{"index", choice}, {"delta", Json::object()}, {"finish_reason", nullptr}}});
    add_progress(progress, fields_, event);
    send_event(event);
  }

  void part(int choice, const AnswerPart& part) override {
    begin(choice);
    if (fields_.times_each) timings_ = answer_timings(part.timings, part.speculation);
    Choice& state = choices_[static_cast<size_t>(choice)];
    state.origins.insert(state.origins.end(), part.origins.begin(), part.origins.end());
    state.logprobs.insert(state.logprobs.end(), part.logprobs.begin(), part.logprobs.end());
    for (const std::string_view text : part.texts()) state.texts.emplace_back(text);
    for (const ChatDelta& delta : state.text.add(part.text))
      send_choice(choice, delta_json(delta), nullptr);
  }

  void finished(int choice, const Generation& generation) override {
    usage_.add(generation, choice == 0 ? chat_.tokens.size() : 0);
    timings_ = answer_timings(generation);
    Choice& state = choices_[static_cast<size_t>(choice)];
    const std::vector<ChatDelta> deltas = state.text.finish(generation.text);
    const ChatAnswer& answer = state.text.answer();
    const std::string reason =
        answer.tool_calls.empty() ? finish_reason(generation.stop_reason) : std::string("tool_calls");
    if (fields_.streams) {
      begin(choice);
      for (const ChatDelta& delta : deltas) send_choice(choice, delta_json(delta), nullptr);
      return send_choice(choice, Json::object(), reason);
    }
    Json message = {{"role", "assistant"}, {"content", answer.content}};
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    if (!answer.tool_calls.empty()) {
      if (answer.content.empty()) message["content"] = nullptr;
      for (const ToolCall& call : answer.tool_calls) message["tool_calls"].push_back(call_json(call));
    }
    state.result = {{"index", choice},
                    {"message", message},
                    {"finish_reason", reason},
                    {"origins", origins_json(generation.origins)}};
    if (!generation.logprobs.empty()) {
      state.result["logprobs"] = {{"content", logprobs_json(generation.logprobs, model_.tokenizer)}};
    }
  }

  void all_finished() override {
    Json result = object(fields_.streams ? "chat.completion.chunk" : "chat.completion");
    result["choices"] = Json::array();
    for (const Choice& choice : choices_) {
      if (!fields_.streams) result["choices"].push_back(choice.result);
    }
    result["usage"] = usage_.json();
    result["timings"] = timings_;
    if (fields_.is_verbose || model_.options.is_verbose)
      result["__verbose"] = {{"prompt", text_with_names(chat_.tokens, model_.tokenizer)}};
    if (!fields_.streams) return respond(result);
    if (fields_.includes_usage) send_event(result);
    send_done();
    finish_stream();
  }

 private:
  struct Choice {
    ChatText text;
    // Of tokens that no event has had yet.
    std::vector<std::optional<DraftSource>> origins = {};
    std::vector<TokenLogprobs> logprobs = {};
    std::vector<std::string> texts = {};
    Json result = nullptr;
  };

  // The first event of a choice says who speaks.
  void begin(int choice) {
    if (!choices_[static_cast<size_t>(choice)].text.begin()) return;
    send_choice(choice, {{"role", "assistant"}, {"content", nullptr}}, nullptr, /*says_who=*/true);
  }

  // With what there is to say of the tokens.
  void send_choice(int choice, const Json& delta, const Json& reason, bool says_who = false) {
    Json entry = {{"index", choice}, {"delta", delta}, {"finish_reason", reason}};
    Choice& state = choices_[static_cast<size_t>(choice)];
    if (!says_who) {
      entry["origins"] = origins_json(std::exchange(state.origins, {}));
      const std::vector<std::string> texts = std::exchange(state.texts, {});
      if (fields_.returns_texts) entry["texts"] = texts;
      if (fields_.generation.sampling.n_logprobs) {
        entry["logprobs"] = {
            {"content", logprobs_json(std::exchange(state.logprobs, {}), model_.tokenizer)}};
      }
    }
    Json event = object("chat.completion.chunk");
    event["choices"] = Json::array({entry});
    if (fields_.times_each && !says_who) event["timings"] = timings_;
    send_event(event);
  }

  Json object(const char* name) const {
    return {{"id", id_},
            {"object", name},
            {"created", created_},
            {"model", model_.id()},
            {"system_fingerprint", system_fingerprint()}};
  }

  const ModelContext& model_;
  AnswerFields fields_;
  PreparedChat chat_;
  std::string id_ = new_id("chatcmpl-");
  int64_t created_ = now_seconds();
  Usage usage_;
  Json timings_;
  std::vector<Choice> choices_;
};

}  // namespace

void answer_openai_chat(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  answer_chat(exchange, model, parse_object(exchange->request().body),
              [&](PreparedChat chat, const AnswerFields& fields) {
                return std::make_unique<OpenAiChatWriter>(exchange, model, fields, std::move(chat));
              });
}

HttpResponse count_chat_tokens(const HttpRequest& request, const ModelContext& model) {
  const PreparedChat chat = prepare_chat(parse_object(request.body), model);
  return {.body = to_text({{"input_tokens", chat.tokens.size()}})};
}

HttpResponse apply_template(const HttpRequest& request, const ModelContext& model) {
  const PreparedChat chat = prepare_chat(parse_object(request.body), model);
  return {.body = to_text({{"prompt", chat.prompt.text}})};
}

}  // namespace forerun
