// One GET request over HTTP or HTTPS, on a connection of its own.
//
//   HttpGet get(parse_url("https://host/file"), {}, {});
//   if (get.status() == 200) for (auto piece = get.read(); !piece.empty(); piece = get.read()) ...
//
// Redirects are not followed. Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/url.h"

namespace forerun {

// The server was not reached, fell silent or hung up: it may go better another time.
class ConnectionLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HttpOptions {
  std::chrono::milliseconds timeout{30000};  // without a byte
  // Certificates are those that the system trusts. Without it anybody could be the server.
  bool verifies = true;
  // Called some times a second; what it throws ends the request.
  std::function<void()> on_wait = [] {};
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

class HttpGet {
 public:
  // Sends the request and reads the head of the answer. Throws ConnectionLost, and Error where trying
  // again is of no use.
  HttpGet(const Url& url, const HttpHeaders& headers, const HttpOptions& options);
  ~HttpGet();

  int status() const;
  std::string header(std::string_view name) const;  // empty: there is none

  // The next piece of the body, valid until the next call; empty at its end. Throws ConnectionLost.
  std::string_view read();
  // All of it. Throws Error where there are more than `max_bytes`.
  std::string read_all(size_t max_bytes);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
