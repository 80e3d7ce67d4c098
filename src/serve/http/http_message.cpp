#include "serve/http/http_message.h"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <optional>

namespace forerun {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
      if (!high || !low) return std::nullopt;
      result += static_cast<char>(16 * *high + *low);
      i += 2;
    } else {
      result += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return result;
}

}  // namespace

std::string_view status_name(int status) {
  const auto name = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return {name.data(), name.size()};
}

bool parse_target(std::string_view target, HttpRequest& request) {
  const size_t mark = target.find('?');
  const auto path = decoded(target.substr(0, mark), /*plus_is_space=*/false);
  if (!path || !path->starts_with('/')) return false;
  request.path = *path;
  if (mark == std::string_view::npos) return true;
  for (std::string_view left = target.substr(mark + 1); !left.empty();) {
    const std::string_view pair = left.substr(0, left.find('&'));
    left.remove_prefix(std::min(left.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    const auto name = decoded(pair.substr(0, equals), /*plus_is_space=*/true);
    const auto value =
        decoded(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) return false;
    request.query[*name] = *value;
  }
  return true;
}

std::string head_of(const HttpResponse& response, const HeadOptions& options) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nServer: forerun\r\n", response.status,
                                 status_name(response.status));
  if (!response.content_type.empty()) head += fmt::format("Content-Type: {}\r\n", response.content_type);
  head += options.is_chunked ? std::string("Transfer-Encoding: chunked\r\n")
                             : fmt::format("Content-Length: {}\r\n", response.body.size());
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  head += options.keeps_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

}  // namespace forerun
