#include "serve/http/http_server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>
#include <vector>

#include "core/error.h"

namespace forerun {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// How long it waits for files to be free when there are none for another connection.
constexpr std::chrono::milliseconds kAcceptPause{50};

asio::awaitable<void> serve_tls(TlsStream stream, const ConnectionOptions& options,
                                ConnectionsState& state, const HttpHandler& handler) {
  error_code error;
  asio::steady_timer timer(stream.get_executor(), options.read_timeout);
  timer.async_wait([&stream](const error_code& cancelled) {
    error_code ignored;
    if (!cancelled) stream.lowest_layer().close(ignored);
  });
  co_await stream.async_handshake(TlsStream::server, asio::redirect_error(asio::use_awaitable, error));
  timer.cancel();
  if (!error) co_await serve_connection(std::move(stream), options, state, handler);
}

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler)
    : options_(options), handler_(std::move(handler)), context_(options.n_threads), acceptor_(context_) {
  if (!options_.certificate_file.empty()) {
    try {
      tls_.emplace(asio::ssl::context::tls_server);
      tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                        asio::ssl::context::no_tlsv1_1);
      tls_->use_certificate_chain_file(options_.certificate_file);
      tls_->use_private_key_file(options_.key_file, asio::ssl::context::pem);
    } catch (const boost::system::system_error& error) {
      fail(ErrorCode::kIo, "cannot use the certificate {} with the key {}: {}",
           options_.certificate_file, options_.key_file, error.code().message());
    }
  }
  try {
    tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(options_.host, std::to_string(options_.port), tcp::resolver::passive);
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen(asio::socket_base::max_listen_connections);
  } catch (const boost::system::system_error& error) {
    fail(ErrorCode::kIo, "cannot listen on {}:{}: {}; choose another --host or --port", options_.host,
         options_.port, error.code().message());
  }
  port_ = acceptor_.local_endpoint().port();
}

void HttpServer::run() {
  asio::co_spawn(context_, accept(), asio::detached);
  std::vector<std::jthread> threads;
  for (int i = 1; i < options_.n_threads; ++i) threads.emplace_back([this] { context_.run(); });
  context_.run();
}

void HttpServer::drain() {
  state_.is_draining = true;
  asio::post(context_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
  asio::co_spawn(context_, stop_when_done(), asio::detached);
}

asio::awaitable<void> HttpServer::stop_when_done() {
  asio::steady_timer pause(context_);
  while (state_.n_answers > 0) {
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(asio::use_awaitable);
  }
  stop();
}

asio::awaitable<void> HttpServer::accept() {
  while (acceptor_.is_open()) {
    error_code error;
    tcp::socket socket(asio::make_strand(context_));
    co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      serve(std::move(socket));
    } else if (acceptor_.is_open()) {
      asio::steady_timer pause(context_, kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

void HttpServer::serve(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const auto strand = socket.get_executor();
  if (tls_) {
    asio::co_spawn(strand,
                   serve_tls(TlsStream(std::move(socket), *tls_), options_.connection, state_, handler_),
                   asio::detached);
  } else {
    asio::co_spawn(strand, serve_connection(std::move(socket), options_.connection, state_, handler_),
                   asio::detached);
  }
}

}  // namespace forerun
