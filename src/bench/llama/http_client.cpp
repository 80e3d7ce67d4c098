#include "bench/llama/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "http_client/http_transfer.h"

namespace forerun {
namespace {

constexpr const char* kHost = "127.0.0.1";

std::optional<HttpAnswer> ask(int port, const std::string& path, std::optional<std::string> json,
                              int timeout_s) {
  HttpAnswer answer;
  const OutgoingRequest request{.url = parse_url(fmt::format("http://{}:{}{}", kHost, port, path)),
                                .json = std::move(json),
                                .timeout = std::chrono::seconds(timeout_s)};
  HttpTransfer transfer(request, [&](std::string_view piece) { answer.body += piece; });
  HttpTransfers transfers;
  transfers.add(transfer);
  while (!transfer.is_done()) transfers.run_for(std::chrono::seconds(1));
  if (transfer.end() != HttpTransfer::End::kWhole) return std::nullopt;
  answer.status = transfer.status();
  return answer;
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
  return ask(port, path, std::nullopt, timeout_s);
}

std::optional<HttpAnswer> http_post_json(int port, const std::string& path, const std::string& body,
                                         int timeout_s) {
  return ask(port, path, body, timeout_s);
}

}  // namespace forerun
