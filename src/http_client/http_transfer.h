// HTTP and HTTPS requests, any number at once on one thread, through libcurl. Certificates are those
// that the system trusts (or SSL_CERT_FILE, SSL_CERT_DIR); proxies those of http_proxy, https_proxy and
// no_proxy, and never for this machine itself.
//
//   HttpTransfers transfers;
//   HttpTransfer transfer({.url = parse_url("https://host/file")}, [](std::string_view piece) { ... });
//   transfers.add(transfer);
//   while (!transfer.is_done()) transfers.run_for(100ms);
//
// Redirects are not followed. Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http_client/url.h"

namespace forerun {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct OutgoingRequest {
  Url url;
  HttpHeaders headers = {};
  std::optional<std::string> json = {};      // sent by POST; without it the request is a GET
  std::chrono::milliseconds timeout{30000};  // without a byte
  bool verifies = true;                      // without it anybody could be the server
};

class HttpTransfer {
 public:
  // Pieces of the body come as they arrive, while HttpTransfers runs. What `on_body` throws ends the
  // transfer, and is thrown to whoever runs it.
  HttpTransfer(const OutgoingRequest& request, std::function<void(std::string_view piece)> on_body);
  ~HttpTransfer();

  bool has_head() const;                              // status and headers are known
  int status() const;                                 // 0: not known yet
  std::string header(const std::string& name) const;  // empty: there is none

  enum class End { kNone, kWhole, kLost, kNoSuchHost, kUntrusted };
  bool is_done() const { return end() != End::kNone; }
  End end() const;
  std::string why() const;  // it was not whole

 private:
  friend class HttpTransfers;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class HttpTransfers {
 public:
  HttpTransfers();
  ~HttpTransfers();

  // Begins with the next run. It outlives this, or is done before.
  void add(HttpTransfer& transfer);
  // Goes on until something comes, but no longer than that. Returns those that are done now.
  std::vector<HttpTransfer*> run_for(std::chrono::milliseconds most);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forerun
