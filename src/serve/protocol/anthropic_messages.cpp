#include "serve/protocol/anthropic_messages.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "serve/answer/event_writer.h"
#include "serve/http/error_response.h"
#include "serve/protocol/answer_json.h"
#include "serve/protocol/anthropic_request.h"
#include "serve/protocol/chat_answer.h"
#include "serve/protocol/chat_text.h"

namespace forerun {
namespace {

Json failure_json(const AnswerError& error) {
  const std::string type = error.status == 503   ? "overloaded_error"
                           : error.status >= 500 ? "api_error"
                           : error.status == 400 ? "invalid_request_error"
                                                 : error.type;
  return {{"type", "error"}, {"error", {{"type", type}, {"message", error.message}}}};
}

std::string stop_reason(const Generation& generation, const ChatAnswer& answer) {
  if (!answer.tool_calls.empty()) return "tool_use";
  switch (generation.stop_reason) {
    case StopReason::kEndOfText: return "end_turn";
    case StopReason::kStop: return generation.stopping_word.empty() ? "end_turn" : "stop_sequence";
    case StopReason::kLimit:
    case StopReason::kContextFull:
    case StopReason::kCancelled: return "max_tokens";
  }
  return "end_turn";
}

Json stop_sequence(const Generation& generation) {
  return generation.stopping_word.empty() ? Json(nullptr) : Json(generation.stopping_word);
}

// Arguments that the model wrote; what is no JSON is given as it is.
Json input_of(const ToolCall& call) {
  Json input = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
  return input.is_object() ? input : Json{{"arguments", call.arguments}};
}

class AnthropicWriter final : public EventWriter {
 public:
  AnthropicWriter(std::shared_ptr<Exchange> exchange, const ModelContext& model, bool streams,
                  PreparedChat chat)
      : EventWriter(std::move(exchange)),
        model_(model),
        streams_(streams),
        chat_(std::move(chat)),
        text_(chat_.prompt.parser) {}

  bool streams() const override { return streams_; }

  void part(int /*choice*/, const AnswerPart& part) override {
    begin();
    for (const ChatDelta& delta : text_.add(part.text)) send_delta(delta);
  }

  void finished(int /*choice*/, const Generation& generation) override {
    const std::vector<ChatDelta> deltas = text_.finish(generation.text);
    const int n_cached = generation.timings.n_cached;
    const Json usage = {{"cache_read_input_tokens", n_cached},
                        {"input_tokens", static_cast<int>(chat_.tokens.size()) - n_cached},
                        {"output_tokens", generation.timings.n_predicted}};
    const std::string reason = stop_reason(generation, text_.answer());
    if (!streams_) {
      result_ = message(content(), reason, stop_sequence(generation), usage);
      return;
    }
    begin();
    for (const ChatDelta& delta : deltas) send_delta(delta);
    if (!block_) start_block({.kind = Block::kText, .tool = -1}, {{"type", "text"}, {"text", ""}});
    stop_block();
    send_event("message_delta",
               {{"type", "message_delta"},
                {"delta", {{"stop_reason", reason}, {"stop_sequence", stop_sequence(generation)}}},
                {"usage", {{"output_tokens", generation.timings.n_predicted}}}});
    send_event("message_stop", {{"type", "message_stop"}});
  }

  void all_finished() override {
    if (streams_) return finish_stream();
    respond(result_);
  }

 protected:
  void send_failure(const AnswerError& error) override { send_event("error", failure(error)); }
  Json failure(const AnswerError& error) const override { return failure_json(error); }

 private:
  struct Block {
    enum Kind { kText, kThinking, kTool } kind;
    int tool;  // which one
    bool operator==(const Block&) const = default;
  };

  Json message(const Json& content, const Json& reason, const Json& sequence, const Json& usage) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"content", content},
            {"model", model_.id()},
            {"stop_reason", reason},
            {"stop_sequence", sequence},
            {"usage", usage}};
  }

  Json content() const {
    const ChatAnswer& answer = text_.answer();
    Json blocks = Json::array();
    if (!answer.reasoning.empty()) {
      blocks.push_back({{"type", "thinking"}, {"thinking", answer.reasoning}, {"signature", ""}});
    }
    if (!answer.content.empty() || answer.tool_calls.empty()) {
      blocks.push_back({{"type", "text"}, {"text", answer.content}});
    }
    for (const ToolCall& call : answer.tool_calls) {
      blocks.push_back(
          {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call)}});
    }
    return blocks;
  }

  void begin() {
    if (!text_.begin()) return;
    const Json usage = {
        {"cache_read_input_tokens", 0}, {"input_tokens", chat_.tokens.size()}, {"output_tokens", 0}};
    send_event("message_start", {{"type", "message_start"},
                                 {"message", message(Json::array(), nullptr, nullptr, usage)}});
  }

  void start_block(const Block& block, const Json& content) {
    block_ = block;
    send_event("content_block_start",
               {{"type", "content_block_start"}, {"index", n_blocks_}, {"content_block", content}});
  }

  void stop_block() {
    if (!std::exchange(block_, std::nullopt)) return;
    send_event("content_block_stop", {{"type", "content_block_stop"}, {"index", n_blocks_++}});
  }

  void send_delta(const ChatDelta& delta) {
    Block block{.kind = Block::kText, .tool = delta.tool};
    Json start = {{"type", "text"}, {"text", ""}};
    Json more = {{"type", "text_delta"}, {"text", delta.content}};
    if (!delta.reasoning.empty()) {
      block.kind = Block::kThinking;
      start = {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
      more = {{"type", "thinking_delta"}, {"thinking", delta.reasoning}};
    } else if (delta.tool >= 0) {
      block.kind = Block::kTool;
      start = {{"type", "tool_use"},
               {"id", delta.call.id},
               {"name", delta.call.name},
               {"input", Json::object()}};
      more = {{"type", "input_json_delta"}, {"partial_json", delta.call.arguments}};
    }
    if (block_ != block) {
      stop_block();
      start_block(block, start);
    }
    send_event("content_block_delta",
               {{"type", "content_block_delta"}, {"index", n_blocks_}, {"delta", more}});
  }

  const ModelContext& model_;
  bool streams_;
  PreparedChat chat_;
  std::string id_ = new_id("msg_");
  ChatText text_;
  std::optional<Block> block_;  // that is being sent
  int n_blocks_ = 0;
  Json result_;
};

// What goes wrong before there is a writer.
template <typename Work>
void in_form(const std::shared_ptr<Exchange>& exchange, const Work& work) {
  try {
    work(parse_object(exchange->request().body));
  } catch (...) {
    const AnswerError error = answer_error(std::current_exception());
    exchange->respond({.status = error.status, .body = to_text(failure_json(error))});
  }
}

}  // namespace

HttpResponse anthropic_error(int status, const std::string& message) {
  const AnswerError error{.status = status, .type = std::string(error_type(status)), .message = message};
  return {.status = status, .body = to_text(failure_json(error))};
}

void answer_anthropic_messages(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  in_form(exchange, [&](const Json& body) {
    if (find_field(body, "max_tokens") == nullptr) {
      fail(ErrorCode::kInvalidArgument, "\"max_tokens\" is missing: how long the answer may be");
    }
    answer_chat(exchange, model, chat_request_of_anthropic(body),
                [&](PreparedChat chat, const AnswerFields& fields) {
                  return std::make_unique<AnthropicWriter>(exchange, model, fields.streams,
                                                           std::move(chat));
                });
  });
}

void count_anthropic_tokens(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  in_form(exchange, [&](const Json& body) {
    const PreparedChat chat = prepare_chat(chat_request_of_anthropic(body), model);
    exchange->respond({.body = to_text({{"input_tokens", chat.tokens.size()}})});
  });
}

}  // namespace forerun
