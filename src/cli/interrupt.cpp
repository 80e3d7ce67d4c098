#include "cli/interrupt.h"

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

bool InterruptGuard::take() {
  const bool was = interrupted != 0;
  interrupted = 0;
  return was;
}

}  // namespace forerun
