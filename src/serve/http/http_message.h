// Requests and responses of HTTP/1.1, as those see them who answer.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forerun {

struct HttpRequest {
  std::string method;                               // "GET"
  std::string path;                                 // decoded, without the query
  std::map<std::string, std::string> query = {};    // decoded
  std::map<std::string, std::string> headers = {};  // by lower-case names
  std::string body = {};

  // Empty: there is none.
  std::string_view header(const std::string& name) const {
    const auto found = headers.find(name);
    return found != headers.end() ? std::string_view(found->second) : std::string_view();
  }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

// What a status is called: "Not Found".
std::string_view status_name(int status);

// The request of a request line's target: path and query, decoded. false: it makes no sense.
bool parse_target(std::string_view target, HttpRequest& request);

// A response's first lines. `length`: of its body; without, the body comes in chunks.
struct HeadOptions {
  bool is_chunked = false;
  bool keeps_alive = true;
};
std::string head_of(const HttpResponse& response, const HeadOptions& options);

}  // namespace forerun
