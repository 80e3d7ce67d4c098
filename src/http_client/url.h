// Addresses of HTTP servers and of what they have.
#pragma once

#include <string>
#include <string_view>

namespace forerun {

struct Url {
  bool is_tls = false;
  std::string host;          // without the brackets of an IPv6 address
  std::string port;          // always there
  std::string target = "/";  // path and query

  // What a token may be sent to: scheme, host and port, in small letters.
  std::string origin() const;
  // The whole address again.
  std::string text() const;
};

// "http://host[:port][/path]" or "https://...". Throws Error.
Url parse_url(std::string_view text);

// Where a Location header leads from `base`. Throws Error.
Url joined_url(const Url& base, std::string_view location);

// A path as part of a target: what could end or change it is written as %2F and so on; slashes stay.
std::string encoded_path(std::string_view path);

}  // namespace forerun
