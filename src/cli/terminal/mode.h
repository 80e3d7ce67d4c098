// The terminal of a program that reads it key by key: pastes come marked, and however the
// program ends or is stopped, the terminal is then as it was before.
#pragma once

namespace forerun {

// One at a time. Fatal signals and Ctrl-Z are caught, unless something else has them.
class TerminalMode {
 public:
  // `screen`: the file of the terminal that is written to.
  explicit TerminalMode(int screen);
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;
};

}  // namespace forerun
