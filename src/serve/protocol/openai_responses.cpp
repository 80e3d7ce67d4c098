#include "serve/protocol/openai_responses.h"

#include <utility>

#include "serve/answer/event_writer.h"
#include "serve/protocol/answer_json.h"
#include "serve/protocol/chat_answer.h"
#include "serve/protocol/chat_text.h"
#include "serve/protocol/responses_request.h"

namespace forerun {
namespace {

class ResponsesWriter final : public EventWriter {
 public:
  ResponsesWriter(std::shared_ptr<Exchange> exchange, const ModelContext& model, AnswerFields fields,
                  PreparedChat chat)
      : EventWriter(std::move(exchange)),
        model_(model),
        fields_(std::move(fields)),
        chat_(std::move(chat)),
        text_(chat_.prompt.parser) {}

  bool streams() const override { return fields_.streams; }

  bool wants_progress() const override { return fields_.streams && fields_.returns_progress; }
  void progress(int /*choice*/, const PromptProgress& progress) override {
    begin();
    Json fields = {{"response", response("in_progress")}};
    add_progress(progress, fields_, fields);
    send("response.in_progress", fields);
  }

  void part(int /*choice*/, const AnswerPart& part) override {
    begin();
    if (fields_.times_each) timings_ = answer_timings(part.timings, part.speculation);
    for (const ChatDelta& delta : text_.add(part.text)) send_delta(delta);
  }

  void finished(int /*choice*/, const Generation& generation) override {
    const std::vector<ChatDelta> deltas = text_.finish(generation.text);
    if (fields_.streams) {
      begin();
      for (const ChatDelta& delta : deltas) send_delta(delta);
      close_item();
    } else {
      for (const ChatDelta& delta : deltas) collect(delta);
      finish_item();
    }
    const bool is_cut = generation.stop_reason == StopReason::kLimit ||
                        generation.stop_reason == StopReason::kContextFull;
    result_ = response(is_cut ? "incomplete" : "completed");
    if (is_cut) result_["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const int n_out = generation.timings.n_predicted;
    const auto n_in = static_cast<int>(chat_.tokens.size());
    result_["usage"] = {{"input_tokens", n_in},
                        {"input_tokens_details", {{"cached_tokens", generation.timings.n_cached}}},
                        {"output_tokens", n_out},
                        {"output_tokens_details", {{"reasoning_tokens", 0}}},
                        {"total_tokens", n_in + n_out}};
    timings_ = answer_timings(generation);
  }

  void all_finished() override {
    if (!fields_.streams) return respond(result_);
    send("response.completed", {{"response", result_}, {"timings", timings_}});
    finish_stream();
  }

 protected:
  void send_failure(const AnswerError& error) override {
    send("error", {{"code", error.type}, {"message", error.message}, {"param", nullptr}});
  }

 private:
  enum class Kind { kNone, kReasoning, kMessage, kCall };

  Json response(const char* status) const {
    return {{"id", id_},
            {"object", "response"},
            {"created_at", created_},
            {"status", status},
            {"error", nullptr},
            {"incomplete_details", nullptr},
            {"model", model_.id()},
            {"output", output_},
            {"parallel_tool_calls", false},
            {"tool_choice", "auto"},
            {"tools", Json::array()},
            {"usage", nullptr}};
  }

  void send(const std::string& type, Json fields) {
    Json event = {{"type", type}, {"sequence_number", n_events_++}};
    event.update(fields);
    send_event(type, event);
  }

  void begin() {
    if (!text_.begin()) return;
    send("response.created", {{"response", response("in_progress")}});
    send("response.in_progress", {{"response", response("in_progress")}});
  }

  // ---- Items of the output, one after the other ----

  static Kind kind_of(const ChatDelta& delta) {
    if (!delta.reasoning.empty()) return Kind::kReasoning;
    return delta.tool >= 0 ? Kind::kCall : Kind::kMessage;
  }

  Json part_json() const {
    return {{"type", "output_text"}, {"text", item_text_}, {"annotations", Json::array()}};
  }

  // The item as it stands.
  Json item(const char* status) const {
    switch (kind_) {
      case Kind::kReasoning:
        return {{"type", "reasoning"},
                {"id", item_id_},
                {"summary", Json::array()},
                {"content", Json::array({{{"type", "reasoning_text"}, {"text", item_text_}}})}};
      case Kind::kCall:
        return {{"type", "function_call"}, {"id", item_id_},          {"call_id", call_.id},
                {"name", call_.name},      {"arguments", item_text_}, {"status", status}};
      case Kind::kMessage:
      case Kind::kNone: break;
    }
    Json content = Json::array();
    if (!item_text_.empty() || std::string_view(status) == "completed") content.push_back(part_json());
    return {{"type", "message"},
            {"id", item_id_},
            {"role", "assistant"},
            {"status", status},
            {"content", content}};
  }

  bool is_another(const ChatDelta& delta) const {
    return kind_of(delta) != kind_ || (kind_ == Kind::kCall && !delta.call.name.empty());
  }

  void start_item(const ChatDelta& delta) {
    kind_ = kind_of(delta);
    call_ = delta.call;
    item_text_.clear();
    item_id_ = new_id(kind_ == Kind::kMessage ? "msg_" : kind_ == Kind::kCall ? "fc_" : "rs_");
  }

  const std::string& grow_item(const ChatDelta& delta) {
    const std::string& more = kind_ == Kind::kReasoning ? delta.reasoning
                              : kind_ == Kind::kCall    ? delta.call.arguments
                                                        : delta.content;
    item_text_ += more;
    return more;
  }

  void finish_item() {
    if (kind_ == Kind::kNone) start_item({.content = {}, .reasoning = {}, .call = {}});
    output_.push_back(item("completed"));
    kind_ = Kind::kNone;
  }

  void collect(const ChatDelta& delta) {
    if (is_another(delta)) {
      if (kind_ != Kind::kNone) finish_item();
      start_item(delta);
    }
    grow_item(delta);
  }

  // ---- The same as events ----

  Json place() const { return {{"item_id", item_id_}, {"output_index", output_.size()}}; }

  void send_at(const std::string& type, const Json& more) {
    Json fields = place();
    if (kind_ != Kind::kCall) fields["content_index"] = 0;
    fields.update(more);
    send(type, fields);
  }

  void open_item(const ChatDelta& delta) {
    start_item(delta);
    send("response.output_item.added",
         {{"output_index", output_.size()}, {"item", item("in_progress")}});
    if (kind_ == Kind::kMessage) send_at("response.content_part.added", {{"part", part_json()}});
  }

  void close_item() {
    if (kind_ == Kind::kNone) open_item({.content = {}, .reasoning = {}, .call = {}});
    switch (kind_) {
      case Kind::kReasoning: send_at("response.reasoning_text.done", {{"text", item_text_}}); break;
      case Kind::kCall:
        send_at("response.function_call_arguments.done", {{"arguments", item_text_}});
        break;
      case Kind::kMessage:
      case Kind::kNone:
        send_at("response.output_text.done", {{"text", item_text_}, {"logprobs", Json::array()}});
        send_at("response.content_part.done", {{"part", part_json()}});
        break;
    }
    send("response.output_item.done", {{"output_index", output_.size()}, {"item", item("completed")}});
    finish_item();
  }

  void send_delta(const ChatDelta& delta) {
    if (is_another(delta)) {
      if (kind_ != Kind::kNone) close_item();
      open_item(delta);
    }
    const std::string& more = grow_item(delta);
    switch (kind_) {
      case Kind::kReasoning: send_at("response.reasoning_text.delta", {{"delta", more}}); break;
      case Kind::kCall: send_at("response.function_call_arguments.delta", {{"delta", more}}); break;
      case Kind::kMessage:
      case Kind::kNone:
        Json fields = {{"delta", more}, {"logprobs", Json::array()}};
        if (fields_.times_each) fields["timings"] = timings_;
        send_at("response.output_text.delta", fields);
        break;
    }
  }

  const ModelContext& model_;
  AnswerFields fields_;
  PreparedChat chat_;
  std::string id_ = new_id("resp_");
  int64_t created_ = now_seconds();
  ChatText text_;
  int n_events_ = 0;
  Json output_ = Json::array();  // items that are complete
  Kind kind_ = Kind::kNone;      // of the one that is not
  std::string item_id_;
  std::string item_text_;
  ToolCall call_;
  Json result_;
  Json timings_;
};

}  // namespace

void answer_openai_responses(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  answer_chat(exchange, model, chat_request_of_responses(parse_object(exchange->request().body)),
              [&](PreparedChat chat, const AnswerFields& fields) {
                return std::make_unique<ResponsesWriter>(exchange, model, fields, std::move(chat));
              });
}

HttpResponse count_responses_tokens(const HttpRequest& request, const ModelContext& model) {
  const PreparedChat chat = prepare_chat(chat_request_of_responses(parse_object(request.body)), model);
  return {.body = to_text({{"input_tokens", chat.tokens.size()}})};
}

}  // namespace forerun
