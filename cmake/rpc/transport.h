// Included before transport.cpp, the sockets of ggml's RPC.
//
// A server that has gone is an error of send(), not a signal that ends the process. One that vanishes without a
// word, with its machine or the network, is noticed after half a minute; one that cannot be reached, sooner.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace forerun {

inline ssize_t send_without_signal(int socket, const void* data, size_t n_bytes, int flags) {
  return ::send(socket, data, n_bytes, flags | MSG_NOSIGNAL);
}

// For every connection transport.cpp sets TCP_NODELAY, so that the rest is set with it.
inline int set_with_timeouts(int socket, int level, int name, const void* value, socklen_t n_bytes) {
  if (level == IPPROTO_TCP && name == TCP_NODELAY) {
    const auto set = [&](int of, int option, int number) {
      ::setsockopt(socket, of, option, &number, sizeof number);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 10);         // seconds
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);         // seconds
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);           // probes
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);  // milliseconds
    set(IPPROTO_TCP, TCP_SYNCNT, 3);            // attempts to connect, about 15 s
  }
  return ::setsockopt(socket, level, name, value, n_bytes);
}

}  // namespace forerun

#define send forerun::send_without_signal
#define setsockopt forerun::set_with_timeouts
