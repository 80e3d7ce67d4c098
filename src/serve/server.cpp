#include "serve/server.h"

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <exception>

#include "serve/app.h"
#include "serve/engine_thread.h"

namespace forerun {

class Server::Impl {
 public:
  explicit Impl(ServeOptions given)
      : options(std::move(given)),
        app(options, engine),
        http(options.http, [this](const std::shared_ptr<Exchange>& exchange) { app.handle(exchange); }) {
    engine.start(options.engine, options.tenants,
                 [this](const std::exception_ptr& error) { on_loaded(error); });
  }
  // What the engine has to say goes to connections, and these cancel what they asked of it.
  ~Impl() { engine.stop(); }

  // On the engine's thread.
  void on_loaded(const std::exception_ptr& error) {
    boost::asio::post(http.context(), [this, error] {
      failure = error;
      if (error) return http.stop();
      try {
        app.set_ready();
        if (on_ready) on_ready();
      } catch (...) {
        failure = std::current_exception();
        http.stop();
      }
    });
  }

  void run() {
    boost::asio::signal_set signals(http.context(), SIGINT, SIGTERM);
    signals.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      http.drain();
      signals.async_wait([&](const boost::system::error_code& again, int) {
        if (!again) http.stop();
      });
    });
    http.run();
    if (failure) std::rethrow_exception(failure);
  }

  ServeOptions options;
  std::function<void()> on_ready;
  std::exception_ptr failure;
  EngineThread engine;
  App app;
  HttpServer http;
};

Server::Server(ServeOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Server::~Server() = default;

int Server::port() const {
  return impl_->http.port();
}

void Server::run(const std::function<void()>& on_ready) {
  impl_->on_ready = on_ready;
  impl_->run();
}

}  // namespace forerun
