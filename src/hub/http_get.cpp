#include "hub/http_get.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/version.h"

namespace forerun {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kTick{100};
constexpr uint32_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kBodyPieceBytes = 128 * 1024;

}  // namespace

class HttpGet::Impl {
 public:
  Impl(const Url& url, const HttpOptions& options)
      : url_(url), options_(options), tls_(asio::ssl::context::tls_client), stream_(context_, tls_) {
    parser_.header_limit(kMaxHeaderBytes);
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
  }

  void connect() {
    tcp::resolver resolver(context_);
    tcp::resolver::results_type found;
    check("find", wait([&](auto done) {
            resolver.async_resolve(url_.host, url_.port,
                                   [&found, done](const error_code& error, const auto& results) {
                                     found = results;
                                     done(error);
                                   });
          }));
    check("reach", wait([&](auto done) { stream_.next_layer().async_connect(found, done); }));
    if (url_.is_tls) shake_hands();
  }

  void send(const HttpHeaders& headers) {
    http::request<http::empty_body> request(http::verb::get, url_.target, 11);
    request.set(http::field::host, url_.host_header());
    request.set(http::field::user_agent, std::string("forerun/") + kVersionText);
    request.set(http::field::accept, "*/*");
    request.set(http::field::accept_encoding, "identity");
    request.set(http::field::connection, "close");
    for (const auto& [name, value] : headers) request.set(name, value);
    check("ask", wait([&](auto done) {
            on_stream([&](auto& stream) { http::async_write(stream, request, done); });
          }));
    check("hear from", wait([&](auto done) {
            on_stream([&](auto& stream) { http::async_read_header(stream, buffer_, parser_, done); });
          }));
  }

  std::string_view read() {
    while (!parser_.is_done()) {
      auto& body = parser_.get().body();
      body.data = piece_.data();
      body.size = piece_.size();
      error_code error = wait([&](auto done) {
        on_stream([&](auto& stream) { http::async_read_some(stream, buffer_, parser_, done); });
      });
      if (error == http::error::need_buffer) error = {};
      const size_t n = piece_.size() - body.size;
      // What came before the connection was lost is good.
      if (n > 0) return {piece_.data(), n};
      check("hear from", error);
    }
    return {};
  }

  const http::response<http::buffer_body>& response() const { return parser_.get(); }

 private:
  void shake_hands() {
    if (options_.verifies) {
      tls_.set_default_verify_paths();
      stream_.set_verify_mode(asio::ssl::verify_peer);
      stream_.set_verify_callback(asio::ssl::host_name_verification(url_.host));
    }
    error_code is_name;
    asio::ip::make_address(url_.host, is_name);
    if (is_name) SSL_set_tlsext_host_name(stream_.native_handle(), url_.host.c_str());
    const error_code error =
        wait([&](auto done) { stream_.async_handshake(asio::ssl::stream_base::client, done); });
    if (error.category() == asio::error::get_ssl_category()) {
      fail(ErrorCode::kIo, "{} has no certificate that this machine trusts, or speaks no TLS: {}",
           url_.host, error.message());
    }
    check("reach", error);
  }

  // Runs what `start` begins, to its end.
  template <typename Start>
  error_code wait(Start start) {
    std::optional<error_code> result;
    stream_.next_layer().expires_after(options_.timeout);
    start([&result](const error_code& error, const auto&...) { result = error; });
    context_.restart();
    while (!result) {
      context_.run_one_for(kTick);
      options_.on_wait();
    }
    return *result;
  }

  void check(std::string_view verb, const error_code& error) const {
    if (!error) return;
    if (error == asio::error::host_not_found) {
      fail(ErrorCode::kNotFound, "there is no server {}: check the address", url_.host);
    }
    throw ConnectionLost(fmt::format("cannot {} {}: {}", verb, url_.origin(), error.message()));
  }

  template <typename Operation>
  void on_stream(Operation operation) {
    if (url_.is_tls) {
      operation(stream_);
    } else {
      operation(stream_.next_layer());
    }
  }

  Url url_;
  HttpOptions options_;
  asio::io_context context_;
  asio::ssl::context tls_;
  asio::ssl::stream<boost::beast::tcp_stream> stream_;
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::vector<char> piece_ = std::vector<char>(kBodyPieceBytes);
};

HttpGet::HttpGet(const Url& url, const HttpHeaders& headers, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(url, options)) {
  impl_->connect();
  impl_->send(headers);
}

HttpGet::~HttpGet() = default;

int HttpGet::status() const {
  return static_cast<int>(impl_->response().result_int());
}

std::string HttpGet::header(std::string_view name) const {
  const auto found = impl_->response().find(name);
  return found != impl_->response().end() ? std::string(found->value()) : std::string();
}

std::string_view HttpGet::read() {
  return impl_->read();
}

std::string HttpGet::read_all(size_t max_bytes) {
  std::string text;
  for (std::string_view piece = read(); !piece.empty(); piece = read()) {
    if (text.size() + piece.size() > max_bytes) {
      fail(ErrorCode::kIo, "the server's answer has more than {} bytes", max_bytes);
    }
    text += piece;
  }
  return text;
}

}  // namespace forerun
