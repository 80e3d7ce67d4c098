#include "cli/terminal/mode.h"

#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace forerun {
namespace {

constexpr std::string_view kMarkPastes = "\x1b[?2004h";
constexpr std::string_view kDoNotMarkPastes = "\x1b[?2004l";
constexpr std::array<int, 5> kSignals = {SIGHUP, SIGTERM, SIGQUIT, SIGABRT, SIGTSTP};

// What signal handlers need; set before they are installed.
struct State {
  int screen = -1;
  bool marks_pastes = false;
  termios original{};
  std::array<struct sigaction, kSignals.size()> previous{};
} state;

// Another program may have the terminal now; touching it would stop us.
bool has_terminal() {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground == -1 || foreground == ::getpgrp();
}

void tell_screen(std::string_view text) {
  if (!state.marks_pastes) return;
  // Where it cannot be written, there is nobody to tell.
  [[maybe_unused]] const ssize_t n = ::write(state.screen, text.data(), text.size());
}

void leave() {
  if (!has_terminal()) return;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &state.original);
  tell_screen(kDoNotMarkPastes);
}

void set_action(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void on_fatal(int signal) {
  leave();
  set_action(signal, SIG_DFL);
  ::raise(signal);  // comes as soon as this handler is left
}

void on_stop(int signal) {
  const int number = errno;
  termios current{};
  const bool is_known = ::tcgetattr(STDIN_FILENO, &current) == 0;
  leave();
  set_action(signal, SIG_DFL);
  ::raise(signal);
  sigset_t stop, before;
  sigemptyset(&stop);
  sigaddset(&stop, signal);
  pthread_sigmask(SIG_UNBLOCK, &stop, &before);  // stops here, until it is to go on
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  set_action(signal, on_stop);
  if (is_known && has_terminal()) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &current);
    tell_screen(kMarkPastes);
  }
  errno = number;
}

}  // namespace

TerminalMode::TerminalMode(int screen) {
  const char* kind = std::getenv("TERM");
  state.screen = screen;
  state.marks_pastes = kind != nullptr && std::string_view(kind) != "dumb";
  ::tcgetattr(STDIN_FILENO, &state.original);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &state.previous[i]);
    if (state.previous[i].sa_handler != SIG_DFL) continue;
    set_action(kSignals[i], kSignals[i] == SIGTSTP ? on_stop : on_fatal);
  }
  tell_screen(kMarkPastes);
}

TerminalMode::~TerminalMode() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &state.previous[i], nullptr);
  leave();
}

}  // namespace forerun
