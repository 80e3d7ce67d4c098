// One GET request whose body is read piece by piece.
//
//   HttpGet get(parse_url("https://host/file"), {}, {});
//   if (get.status() == 200) for (auto piece = get.read(); !piece.empty(); piece = get.read()) ...
//
// Redirects are not followed. Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http_client/http_transfer.h"

namespace forerun {

// The server was not reached, fell silent or hung up: it may go better another time.
class ConnectionLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HttpOptions {
  std::chrono::milliseconds timeout{30000};  // without a byte
  bool verifies = true;                      // as in OutgoingRequest
  // Called some times a second; what it throws ends the request.
  std::function<void()> on_wait = [] {};
};

class HttpGet {
 public:
  // Sends the request and reads the head of the answer. Throws ConnectionLost, and Error where trying
  // again is of no use.
  HttpGet(const Url& url, const HttpHeaders& headers, const HttpOptions& options);
  HttpGet(const HttpGet&) = delete;
  HttpGet& operator=(const HttpGet&) = delete;

  int status() const { return transfer_.status(); }
  std::string header(const std::string& name) const { return transfer_.header(name); }  // empty: none

  // The next piece of the body, valid until the next call; empty at its end. Throws ConnectionLost.
  std::string_view read();
  // All of it. Throws Error where there are more than `max_bytes`.
  std::string read_all(size_t max_bytes);

 private:
  void run();
  // Throws where it ended otherwise than whole.
  void check() const;

  Url url_;
  HttpOptions options_;
  std::string came_;   // and was not read yet
  std::string piece_;  // was read last
  HttpTransfer transfer_;
  HttpTransfers transfers_;
};

}  // namespace forerun
