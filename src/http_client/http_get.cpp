#include "http_client/http_get.h"

#include <utility>

#include "core/error.h"

namespace forerun {
namespace {

constexpr std::chrono::milliseconds kTick{100};

}  // namespace

HttpGet::HttpGet(const Url& url, const HttpHeaders& headers, const HttpOptions& options)
    : url_(url),
      options_(options),
      transfer_(
          {.url = url, .headers = headers, .timeout = options.timeout, .verifies = options.verifies},
          [this](std::string_view piece) { came_ += piece; }) {
  transfers_.add(transfer_);
  while (!transfer_.has_head() && !transfer_.is_done()) run();
  if (!transfer_.has_head()) check();
}

void HttpGet::run() {
  transfers_.run_for(kTick);
  options_.on_wait();
}

void HttpGet::check() const {
  switch (transfer_.end()) {
    case HttpTransfer::End::kNone:
    case HttpTransfer::End::kWhole: return;
    case HttpTransfer::End::kNoSuchHost:
      fail(ErrorCode::kNotFound, "there is no server {}: check the address", url_.host);
    case HttpTransfer::End::kUntrusted:
      fail(ErrorCode::kIo, "{} has no certificate that this machine trusts, or speaks no TLS: {}",
           url_.host, transfer_.why());
    case HttpTransfer::End::kLost:
      throw ConnectionLost(fmt::format("cannot {} {}: {}", transfer_.has_head() ? "hear from" : "reach",
                                       url_.origin(), transfer_.why()));
  }
}

std::string_view HttpGet::read() {
  while (came_.empty() && !transfer_.is_done()) run();
  // What came before the connection was lost is good.
  if (came_.empty()) check();
  piece_ = std::exchange(came_, {});
  return piece_;
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
