// One connection: reads requests, lets a handler answer them, sends what it says.
//
// There is a read pending while an answer is made, so that a client who leaves is noticed at once.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "serve/http/exchange.h"

namespace forerun {

// Answers now or later, on the exchange's strand. What it throws is a bug: the client gets status 500.
using HttpHandler = std::function<void(const std::shared_ptr<Exchange>&)>;

struct ConnectionOptions {
  size_t max_header = size_t{64} << 10;  // bytes
  size_t max_body = size_t{64} << 20;
  size_t max_waiting = size_t{4} << 20;    // of an answer, for a client who reads slowly
  std::chrono::seconds read_timeout{60};   // without a byte of a request that has begun
  std::chrono::seconds idle_timeout{600};  // between requests
  std::chrono::seconds write_timeout{60};  // without a byte that the client takes
};

// Of all connections of a server.
struct ConnectionsState {
  std::atomic<bool> is_draining = false;  // no further requests are taken
  std::atomic<int> n_answers = 0;         // that are being made or sent
};

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

// Each serves until the client leaves or one of the limits is hit. The stream's executor is a strand.
// The rest outlives it.
boost::asio::awaitable<void> serve_connection(boost::asio::ip::tcp::socket stream,
                                              const ConnectionOptions& options, ConnectionsState& state,
                                              const HttpHandler& handler);
boost::asio::awaitable<void> serve_connection(TlsStream stream, const ConnectionOptions& options,
                                              ConnectionsState& state, const HttpHandler& handler);

}  // namespace forerun
