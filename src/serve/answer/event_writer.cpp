#include "serve/answer/event_writer.h"

#include <fmt/format.h>

namespace forerun {

void EventWriter::respond(const Json& json) {
  exchange_->respond({.body = to_text(json)});
}

void EventWriter::begin_stream() {
  if (exchange_->has_begun()) return;
  exchange_->begin({.content_type = "text/event-stream",
                    .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
}

void EventWriter::send_event(const Json& json) {
  begin_stream();
  exchange_->write(fmt::format("data: {}\n\n", to_text(json)));
}

void EventWriter::send_event(const std::string& name, const Json& json) {
  begin_stream();
  exchange_->write(fmt::format("event: {}\ndata: {}\n\n", name, to_text(json)));
}

void EventWriter::send_done() {
  exchange_->write("data: [DONE]\n\n");
}

void EventWriter::failed(const AnswerError& error) {
  if (!exchange_->has_begun()) {
    HttpResponse response{.status = error.status, .body = to_text(failure(error))};
    return exchange_->respond(std::move(response));
  }
  send_failure(error);
  exchange_->finish();
}

void EventWriter::send_failure(const AnswerError& error) {
  send_event(failure(error));
}

}  // namespace forerun
