#include "serve/http/exchange.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"

namespace forerun {

void Exchange::add_output(std::string_view bytes) {
  if (is_gone_) return;
  output_ += bytes;
  if (state_ == State::kStreams && output_.size() > max_waiting_) return set_gone();
  if (output_callback_) output_callback_();
}

void Exchange::respond(HttpResponse response) {
  CHECK(state_ == State::kWaits);
  set_finished();
  const bool has_body = request_.method != "HEAD";
  const std::string first_lines = head(response, /*is_chunked=*/false);
  add_output(has_body ? first_lines + response.body : first_lines);
}

std::string Exchange::head(HttpResponse& response, bool is_chunked) const {
  response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
  return head_of(response, {.is_chunked = is_chunked, .keeps_alive = keeps_alive_});
}

void Exchange::begin(HttpResponse response) {
  CHECK(state_ == State::kWaits);
  state_ = State::kStreams;
  add_output(head(response, /*is_chunked=*/true));
}

void Exchange::write(std::string_view part) {
  CHECK(state_ == State::kStreams);
  if (!part.empty()) add_output(fmt::format("{:x}\r\n{}\r\n", part.size(), part));
}

void Exchange::finish() {
  CHECK(state_ == State::kStreams);
  set_finished();
  add_output("0\r\n\r\n");
}

void Exchange::set_finished() {
  state_ = State::kFinished;
  // There is nothing to cancel any more, and what it holds may hold this.
  gone_callback_ = {};
}

void Exchange::on_gone(std::function<void()> callback) {
  if (is_gone_) return callback();
  gone_callback_ = std::move(callback);
}

std::string Exchange::take_output() {
  return std::exchange(output_, {});
}

void Exchange::set_gone() {
  if (std::exchange(is_gone_, true)) return;
  output_.clear();
  if (output_callback_) output_callback_();
  // What it holds may hold this.
  if (const auto callback = std::exchange(gone_callback_, {})) callback();
}

}  // namespace forerun
