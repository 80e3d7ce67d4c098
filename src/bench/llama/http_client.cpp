#include "bench/llama/http_client.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"

namespace forerun {
namespace {

constexpr const char* kHost = "127.0.0.1";

httplib::Client client_of(int port, int timeout_s) {
  httplib::Client client(kHost, port);
  client.set_connection_timeout(timeout_s);
  client.set_read_timeout(timeout_s);
  client.set_write_timeout(timeout_s);
  return client;
}

std::optional<HttpAnswer> answer_of(const httplib::Result& result) {
  if (!result) return std::nullopt;
  return HttpAnswer{.status = result->status, .body = result->body};
}

}  // namespace

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, kHost, &address.sin_addr);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      socket >= 0 && ::bind(socket, generic, size) == 0 && ::getsockname(socket, generic, &size) == 0;
  if (socket >= 0) ::close(socket);
  if (!found) fail(ErrorCode::kIo, "no free port on {}: end other programs that listen there", kHost);
  return ntohs(address.sin_port);
}

std::optional<HttpAnswer> http_get(int port, const std::string& path, int timeout_s) {
  return answer_of(client_of(port, timeout_s).Get(path));
}

std::optional<HttpAnswer> http_post_json(int port, const std::string& path, const std::string& body,
                                         int timeout_s) {
  return answer_of(client_of(port, timeout_s).Post(path, body, "application/json"));
}

}  // namespace forerun
