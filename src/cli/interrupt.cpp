#include "cli/interrupt.h"

#include <poll.h>

#include <cerrno>
#include <csignal>

namespace forerun {
namespace {

volatile std::sig_atomic_t interrupted = 0;
struct sigaction previous {};

void on_interrupt(int) {
  interrupted = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // no SA_RESTART: reading a line is interrupted too
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous, nullptr);
}

bool InterruptGuard::wait_for_input(int file) {
  // The signal is let through only while waiting, or one that comes just before the
  // wait would not end it.
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  pollfd input{.fd = file, .events = POLLIN, .revents = 0};
  while (interrupted == 0 && ::ppoll(&input, 1, nullptr, &before) < 0 && errno == EINTR) {
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return interrupted == 0;
}

bool InterruptGuard::take() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

}  // namespace forerun
