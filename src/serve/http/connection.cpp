#include "serve/http/connection.h"

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "serve/http/error_response.h"

namespace forerun {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Parser = http::request_parser<http::string_body>;

// Bytes that are read of a next request while one is answered.
constexpr size_t kReadAhead = 8192;

// Whatever a connection waits for wakes it here.
class Event {
 public:
  explicit Event(const asio::any_io_executor& executor) : timer_(executor) {}

  void set() {
    is_set_ = true;
    timer_.cancel();
  }
  // Until set() is called, or was since the last time. false: the time is over.
  asio::awaitable<bool> wait(std::optional<std::chrono::seconds> most = std::nullopt) {
    if (!is_set_) {
      if (most) {
        timer_.expires_after(*most);
      } else {
        timer_.expires_at(std::chrono::steady_clock::time_point::max());
      }
      error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return std::exchange(is_set_, false);
  }

 private:
  asio::steady_timer timer_;
  bool is_set_ = false;
};

// What of a connection outlives its coroutine while an operation is pending.
template <typename Stream>
struct Shared {
  explicit Shared(Stream given) : stream(std::move(given)), event(stream.get_executor()) {}

  Stream stream;
  Event event;
  boost::beast::flat_buffer buffer;  // what was read and not parsed
  std::array<char, 8192> incoming;   // what is being read
  bool is_reading = false;
  bool is_closed = false;  // by the client
};

template <typename Stream>
void start_reading(const std::shared_ptr<Shared<Stream>>& shared) {
  if (shared->is_reading || shared->is_closed) return;
  shared->is_reading = true;
  const auto on_read = [shared](const error_code& error, size_t n_bytes) {
    shared->is_reading = false;
    shared->is_closed = static_cast<bool>(error);
    shared->buffer.commit(
        asio::buffer_copy(shared->buffer.prepare(n_bytes), asio::buffer(shared->incoming, n_bytes)));
    shared->event.set();
  };
  shared->stream.async_read_some(asio::buffer(shared->incoming), on_read);
}

template <typename Stream>
class Connection {
 public:
  Connection(Stream stream, const ConnectionOptions& options, ConnectionsState& state,
             const HttpHandler& handler)
      : shared_(std::make_shared<Shared<Stream>>(std::move(stream))),
        options_(options),
        state_(state),
        handler_(handler) {}
  ~Connection() {
    error_code ignored;
    shared_->stream.lowest_layer().close(ignored);
  }

  asio::awaitable<void> serve() {
    while (!state_.is_draining) {
      Parser parser;
      parser.header_limit(static_cast<uint32_t>(options_.max_header));
      parser.body_limit(options_.max_body);
      if (!co_await read(parser)) co_return;
      const auto exchange = exchange_for(parser);
      if (exchange == nullptr) {
        co_await refuse(400, "the request line makes no sense");
        co_return;
      }
      if (!co_await answer(exchange) || !exchange->keeps_alive()) co_return;
    }
  }

 private:
  // One whole request. false: there is none any more, and the client was told why.
  asio::awaitable<bool> read(Parser& parser) {
    bool was_asked_to_go_on = false;
    for (;;) {
      if (shared_->buffer.size() > 0) {
        error_code error;
        shared_->buffer.consume(parser.put(shared_->buffer.data(), error));
        if (parser.is_done()) co_return true;
        if (error && error != http::error::need_more) {
          co_await refuse(error);
          co_return false;
        }
        if (!error) continue;
      }
      // What came before the client left is no whole request.
      if (shared_->is_closed) co_return false;
      const bool wants_to_hear = parser.is_header_done() && !was_asked_to_go_on &&
                                 parser.get()[http::field::expect] == "100-continue";
      if (wants_to_hear) {
        was_asked_to_go_on = true;
        if (!co_await send("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
      }
      start_reading(shared_);
      const bool has_begun = parser.got_some() || shared_->buffer.size() > 0;
      if (!co_await shared_->event.wait(has_begun ? options_.read_timeout : options_.idle_timeout)) {
        if (has_begun) co_await refuse(408, "the rest of the request did not come in time");
        co_return false;
      }
    }
  }

  std::shared_ptr<Exchange> exchange_for(Parser& parser) {
    auto& message = parser.get();
    HttpRequest request{.method = std::string(message.method_string()), .path = ""};
    if (!parse_target({message.target().data(), message.target().size()}, request)) return nullptr;
    for (const auto& field : message) {
      std::string name(field.name_string());
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      request.headers.emplace(std::move(name), std::string(field.value()));
    }
    const bool keeps_alive = message.keep_alive();
    request.body = std::move(message.body());
    auto exchange = std::make_shared<Exchange>(std::move(request), shared_->stream.get_executor(),
                                               options_.max_waiting);
    exchange->keep_alive(keeps_alive && !state_.is_draining);
    return exchange;
  }

  // false: the client is gone.
  asio::awaitable<bool> answer(const std::shared_ptr<Exchange>& exchange) {
    exchange->on_output([shared = std::weak_ptr(shared_)] {
      if (const auto alive = shared.lock()) alive->event.set();
    });
    // Whatever ends this, those who answer are told that nobody listens.
    struct Guard {
      Exchange& exchange;
      ConnectionsState& state;
      ~Guard() {
        if (!exchange.is_finished()) exchange.set_gone();
        --state.n_answers;
      }
    };
    ++state_.n_answers;
    const Guard guard{*exchange, state_};
    try {
      handler_(exchange);
    } catch (const std::exception& error) {
      if (exchange->has_begun()) co_return false;
      exchange->respond(error_response(500, error.what()));
    }
    for (;;) {
      const bool is_finished = exchange->is_finished();
      const std::string output = exchange->take_output();
      if (!output.empty()) {
        if (!co_await send(output)) co_return false;
        continue;
      }
      if (is_finished) co_return true;
      if (exchange->is_gone()) co_return false;
      if (shared_->buffer.size() < kReadAhead) start_reading(shared_);
      co_await shared_->event.wait();
      if (shared_->is_closed) co_return false;
    }
  }

  asio::awaitable<bool> send(const std::string& bytes) {
    using namespace asio::experimental::awaitable_operators;
    asio::steady_timer timer(shared_->stream.get_executor());
    error_code error, ignored;
    for (size_t n_sent = 0; n_sent < bytes.size();) {
      timer.expires_after(options_.write_timeout);
      const auto done = co_await (
          shared_->stream.async_write_some(asio::buffer(bytes.data() + n_sent, bytes.size() - n_sent),
                                           asio::redirect_error(asio::use_awaitable, error)) ||
          timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored)));
      if (done.index() != 0 || error) co_return false;
      n_sent += std::get<0>(done);
    }
    co_return true;
  }

  asio::awaitable<void> refuse(const error_code& error) {
    if (error == http::error::body_limit) return refuse(413, "the body is too large");
    if (error == http::error::header_limit) return refuse(431, "the headers are too large");
    return refuse(400, "this is no HTTP request: " + error.message());
  }

  asio::awaitable<void> refuse(int status, std::string why) {
    const HttpResponse response = error_response(status, why);
    co_await send(head_of(response, {.keeps_alive = false}) + response.body);
    // Unread bytes would make the system reset the connection before the client read this.
    error_code ignored;
    shared_->stream.lowest_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    for (int i = 0; i < 64 && !shared_->is_closed; ++i) {
      shared_->buffer.clear();
      start_reading(shared_);
      if (!co_await shared_->event.wait(std::chrono::seconds(1))) break;
    }
  }

  std::shared_ptr<Shared<Stream>> shared_;
  const ConnectionOptions& options_;
  ConnectionsState& state_;
  const HttpHandler& handler_;
};

template <typename Stream>
asio::awaitable<void> serve_stream(Stream stream, const ConnectionOptions& options,
                                   ConnectionsState& state, const HttpHandler& handler) {
  Connection connection(std::move(stream), options, state, handler);
  co_await connection.serve();
}

}  // namespace

asio::awaitable<void> serve_connection(asio::ip::tcp::socket stream, const ConnectionOptions& options,
                                       ConnectionsState& state, const HttpHandler& handler) {
  return serve_stream(std::move(stream), options, state, handler);
}

asio::awaitable<void> serve_connection(TlsStream stream, const ConnectionOptions& options,
                                       ConnectionsState& state, const HttpHandler& handler) {
  return serve_stream(std::move(stream), options, state, handler);
}

}  // namespace forerun
