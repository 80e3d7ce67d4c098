// Listens, and serves every connection on a few threads.
//
//   HttpServer server({.host = "127.0.0.1", .port = 8080}, handler);
//   server.run();  // until stop()
//
// stop() and drain() may be called from any thread, and from the handler.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <optional>
#include <string>

#include "serve/http/connection.h"

namespace forerun {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0: one that is free
  int n_threads = 2;
  // With both, only TLS is spoken. PEM files.
  std::string certificate_file = {};
  std::string key_file = {};
  ConnectionOptions connection = {};
};

class HttpServer {
 public:
  // Listens from now on. Throws Error: an address that cannot be had, files that cannot be read.
  HttpServer(const HttpServerOptions& options, HttpHandler handler);

  int port() const { return port_; }  // that it listens on
  boost::asio::io_context& context() { return context_; }

  // Serves until stop().
  void run();
  // Takes no further connection and no further request; run() returns when all answers are sent.
  void drain();
  int n_answers() const { return state_.n_answers; }  // that are being made or sent
  // run() returns at once.
  void stop() { context_.stop(); }

 private:
  boost::asio::awaitable<void> accept();
  void serve(boost::asio::ip::tcp::socket socket);
  boost::asio::awaitable<void> stop_when_done();

  HttpServerOptions options_;
  HttpHandler handler_;
  ConnectionsState state_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::optional<boost::asio::ssl::context> tls_;
  int port_ = 0;
};

}  // namespace forerun
