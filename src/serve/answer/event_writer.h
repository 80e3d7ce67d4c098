// What writers of all protocols share: a whole JSON object, or a stream of server-sent events.
#pragma once

#include <memory>
#include <string>

#include "serve/answer/answer_writer.h"
#include "serve/http/exchange.h"
#include "serve/protocol/json_fields.h"

namespace forerun {

class EventWriter : public AnswerWriter {
 public:
  // The error as a JSON object, or as an event where the stream has begun.
  void failed(const AnswerError& error) override;

 protected:
  explicit EventWriter(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  void respond(const Json& json);
  // Begins the stream with the first.
  void send_event(const Json& json);
  void send_event(const std::string& name, const Json& json);
  void send_done();  // "[DONE]"
  void finish_stream() { exchange_->finish(); }

  // How a stream says that it failed.
  virtual void send_failure(const AnswerError& error);
  virtual Json failure(const AnswerError& error) const { return {{"error", error.json()}}; }

 private:
  void begin_stream();
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace forerun
