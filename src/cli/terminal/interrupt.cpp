#include "cli/terminal/interrupt.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "core/error.h"

namespace forerun {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);
struct sigaction previous {};

void on_interrupt(int) {
  interrupted = true;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = false;
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
  while (!interrupted && ::ppoll(&input, 1, nullptr, &before) < 0 && errno == EINTR) {
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return !interrupted;
}

bool InterruptGuard::take() {
  return interrupted.exchange(false);
}

void check_interrupt() {
  if (InterruptGuard::take()) fail(ErrorCode::kInvalidArgument, "interrupted: nothing was written");
}

}  // namespace forerun
