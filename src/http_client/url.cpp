#include "http_client/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"

namespace forerun {
namespace {

constexpr size_t kMaxUrl = 16384;  // signed addresses are long

bool is_unreserved(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_' ||
         c == ':';
}

[[noreturn]] void fail_url(std::string_view text) {
  fail(ErrorCode::kInvalidArgument, "'{}' is no address of the form https://host[:port][/path]",
       text.substr(0, 200));
}

// Scheme and host as in an address, without what follows from the scheme.
std::string start_of(const Url& url) {
  const std::string name = url.host.find(':') != std::string::npos ? "[" + url.host + "]" : url.host;
  const std::string start = (url.is_tls ? "https://" : "http://") + name;
  return url.port == (url.is_tls ? "443" : "80") ? start : start + ":" + url.port;
}

}  // namespace

std::string Url::text() const {
  return start_of(*this) + target;
}

std::string Url::origin() const {
  return fmt::format("{}://{}:{}", is_tls ? "https" : "http", host, port);
}

Url parse_url(std::string_view text) {
  // Nothing that could end a line of a request.
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (text.size() > kMaxUrl || !is_plain) fail_url(text);
  Url url;
  url.is_tls = text.starts_with("https://");
  if (!url.is_tls && !text.starts_with("http://")) fail_url(text);
  std::string_view rest = text.substr(url.is_tls ? 8 : 7);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view address = rest.substr(0, end);
  rest = rest.substr(end);
  rest = rest.substr(0, rest.find('#'));
  url.target = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);

  url.port = url.is_tls ? "443" : "80";
  // The colons of an IPv6 address stand in brackets.
  const size_t bracket = address.starts_with('[') ? address.find(']') : 0;
  if (bracket == std::string_view::npos) fail_url(text);
  if (const size_t colon = address.find(':', bracket); colon != std::string_view::npos) {
    url.port = address.substr(colon + 1);
    address = address.substr(0, colon);
    const bool is_number = !url.port.empty() && url.port.size() <= 5 &&
                           std::all_of(url.port.begin(), url.port.end(),
                                       [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!is_number) fail_url(text);
  }
  url.host = bracket > 0 ? address.substr(1, bracket - 1) : address;
  if (bracket > 0 && address.size() != bracket + 1) fail_url(text);
  for (char& c : url.host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  // Names and passwords in front of an @ are refused with the rest.
  if (url.host.empty() || !std::all_of(url.host.begin(), url.host.end(), is_host_character))
    fail_url(text);
  return url;
}

Url joined_url(const Url& base, std::string_view location) {
  if (location.starts_with("//")) {
    return parse_url(fmt::format("{}{}", base.is_tls ? "https:" : "http:", location));
  }
  if (location.find("://") < location.find_first_of("/?#")) return parse_url(location);
  const std::string start = start_of(base);
  if (location.starts_with('/')) return parse_url(fmt::format("{}{}", start, location));
  const std::string_view path = std::string_view(base.target).substr(0, base.target.find('?'));
  return parse_url(fmt::format("{}{}{}", start, path.substr(0, path.rfind('/') + 1), location));
}

std::string encoded_path(std::string_view path) {
  std::string result;
  for (const char c : path) {
    if (is_unreserved(c) || c == '/') {
      result += c;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

}  // namespace forerun
