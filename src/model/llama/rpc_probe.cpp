#include "model/llama/rpc_probe.h"

#include <fmt/format.h>
#include <ggml-rpc.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

namespace forerun {
namespace {

using Clock = std::chrono::steady_clock;

// How a client begins: the command, the length of what follows, and what it can do beyond TCP: nothing.
// The server answers with as much, its version in front (ggml-rpc.cpp).
constexpr uint8_t kHello = 14;
constexpr size_t kLengthBytes = 8;
constexpr size_t kCapabilities = 24;
constexpr size_t kVersionBytes = 4;
constexpr const char* kNoServer = "it is no RPC server, or one of another version of llama.cpp";

class Socket {
 public:
  Socket() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool is_ready(const Socket& socket, short what, Clock::time_point end) {
  pollfd wanted{.fd = socket.get(), .events = what, .revents = 0};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return left > 0 && ::poll(&wanted, 1, static_cast<int>(left)) == 1;
}

// Why it did not work; nullopt: it did.
std::optional<std::string> connect_to(const std::string& endpoint, const Socket& socket,
                                      Clock::time_point end) {
  const size_t colon = endpoint.find(':');
  addrinfo hints{};
  hints.ai_family = AF_INET;  // all that ggml can
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(endpoint.substr(0, colon).c_str(), endpoint.substr(colon + 1).c_str(),
                                   &hints, &found);
  if (status != 0) return ::gai_strerror(status);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, ::freeaddrinfo);
  int error = ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    socklen_t n_bytes = sizeof error;
    if (is_ready(socket, POLLOUT, end)) {
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &n_bytes);
    }
  }
  return error == 0 ? std::nullopt : std::optional<std::string>(std::strerror(error));
}

std::optional<std::string> greet(const Socket& socket, Clock::time_point end) {
  const std::array<uint8_t, kLengthBytes + 1 + kCapabilities> hello{kHello, kCapabilities};
  const ssize_t n_sent = ::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
  if (n_sent != static_cast<ssize_t>(hello.size())) return "the connection broke";
  std::array<uint8_t, kLengthBytes + kVersionBytes + kCapabilities> answer{};
  for (size_t n = 0; n < answer.size();) {
    if (!is_ready(socket, POLLIN, end))
      return "it does not answer: it may have another client, of which it serves one at a time";
    const ssize_t n_read = ::recv(socket.get(), answer.data() + n, answer.size() - n, 0);
    if (n_read <= 0) return kNoServer;
    n += static_cast<size_t>(n_read);
  }
  if (answer[0] != kVersionBytes + kCapabilities) return kNoServer;
  const uint8_t major = answer[kLengthBytes], minor = answer[kLengthBytes + 1];
  if (major == RPC_PROTO_MAJOR_VERSION && minor <= RPC_PROTO_MINOR_VERSION) return std::nullopt;
  return fmt::format(
      "it speaks version {}.{} of the protocol, and we {}.{}: take it from another llama.cpp", major,
      minor, RPC_PROTO_MAJOR_VERSION, RPC_PROTO_MINOR_VERSION);
}

}  // namespace

std::optional<std::string> rpc_obstacle(const std::string& endpoint,
                                        std::chrono::milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  const Socket socket;
  if (auto obstacle = connect_to(endpoint, socket, end)) return obstacle;
  return greet(socket, end);
}

bool rpc_is_there(const std::string& endpoint, std::chrono::milliseconds patience) {
  return !connect_to(endpoint, Socket(), Clock::now() + patience);
}

}  // namespace forerun
