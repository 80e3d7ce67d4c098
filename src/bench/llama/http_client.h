// Requests to a program on this machine.
#pragma once

#include <optional>
#include <string>

namespace forerun {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// A port of 127.0.0.1 that nobody listens on now. Throws Error.
int free_port();

// Each has a connection of its own, so any thread may call them. nullopt: nobody listens, or
// nothing came for `timeout_s`.
std::optional<HttpAnswer> http_get(int port, const std::string& path, int timeout_s);
std::optional<HttpAnswer> http_post_json(int port, const std::string& path, const std::string& body,
                                         int timeout_s);

}  // namespace forerun
