// A request of a connection, and the way back to whoever sent it.
//
// Everything happens on the connection's strand, so that nothing of it is locked. Other threads
// post() what they have to say there.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/http_message.h"

namespace forerun {

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  // `max_waiting`: bytes that may wait for a client who reads slowly.
  Exchange(HttpRequest request, boost::asio::any_io_executor strand, size_t max_waiting)
      : request_(std::move(request)), strand_(std::move(strand)), max_waiting_(max_waiting) {}

  const HttpRequest& request() const { return request_; }

  // From any thread: `work` runs on the strand, while this lives.
  template <typename Work>
  void post(Work work) {
    boost::asio::post(strand_,
                      [self = shared_from_this(), work = std::move(work)]() mutable { work(); });
  }

  // With whatever is answered.
  void add_header(std::string name, std::string value) {
    headers_.emplace_back(std::move(name), std::move(value));
  }
  // Answers, at once...
  void respond(HttpResponse response);
  // ... or in parts: its first lines, then what is written, until it is finished. A client who reads too
  // slowly for what is written is gone.
  void begin(HttpResponse response);
  void write(std::string_view part);
  void finish();

  // Called once when the client is gone before the answer was finished; at once if that is so already.
  void on_gone(std::function<void()> callback);
  bool is_gone() const { return is_gone_; }
  bool has_begun() const { return state_ != State::kWaits; }

  // ---- For the connection ----

  // Called whenever there is something new to send.
  void on_output(std::function<void()> callback) { output_callback_ = std::move(callback); }
  void keep_alive(bool keeps_alive) { keeps_alive_ = keeps_alive; }
  bool keeps_alive() const { return keeps_alive_; }
  std::string take_output();
  bool is_finished() const { return state_ == State::kFinished; }
  void set_gone();

 private:
  enum class State { kWaits, kStreams, kFinished };
  void add_output(std::string_view bytes);
  void set_finished();
  std::string head(HttpResponse& response, bool is_chunked) const;

  HttpRequest request_;
  boost::asio::any_io_executor strand_;
  size_t max_waiting_;
  State state_ = State::kWaits;
  bool keeps_alive_ = true;
  bool is_gone_ = false;
  std::vector<std::pair<std::string, std::string>> headers_;
  std::string output_;
  std::function<void()> output_callback_;
  std::function<void()> gone_callback_;
};

}  // namespace forerun
